"""Split MovieLens 100K, or a similar simulated set."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from pathlib import Path

    from sgtune.study.posteriors import pmf
    from sgtune.study.posteriors.data_sets import DATA_SETS, check_download

    data = this.settings["data"]["pmf"]
    if data["simulated"] is None:
        path = Path(snakemake.input[0])
        check_download(DATA_SETS["movielens-100k"], path.parent)
        ratings, made_by = pmf.read_ratings(path), "MovieLens 100K, split u1"
    else:
        ratings = pmf.simulate(data["simulated"], data["seed"])
        made_by = "sgtune.study.posteriors.pmf.simulate"
    facts = {"made_by": made_by, "model": "pmf", "provenance": this.account()}
    pmf.write(snakemake.output.facts, ratings, **facts)
