"""Split MovieLens 100K, or a similar simulated set."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False) as this:
    from pathlib import Path

    from sgtune.study.posteriors import movielens
    from sgtune.study.posteriors.downloads import MOVIELENS
    from sgtune.study.posteriors.store import check_files

    data = this.settings["data"]["pmf"]
    if data["simulated"] is None:
        path = Path(snakemake.input[0])
        check_files(path.parent, MOVIELENS.sha256)
        ratings, made_by = movielens.read_ratings(path), "MovieLens 100K, split u1"
    else:
        ratings = movielens.simulate(data["simulated"], data["seed"])
        made_by = "sgtune.study.posteriors.movielens.simulate"
    movielens.write(snakemake.output.facts, ratings, made_by=made_by)
    this.sign(snakemake.output.facts, "pmf")
