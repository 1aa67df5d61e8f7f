"""Prepare MNIST, or simulate a similar set."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from pathlib import Path

    from sgtune.study.posteriors import bnn
    from sgtune.study.posteriors.data_sets import DATA_SETS, check_download

    settings = this.settings["data"]["bnn"]
    if settings["simulated"] is None:
        folder = Path(snakemake.input[0]).parent
        check_download(DATA_SETS["mnist"], folder)
        arrays, made_by = bnn.read_set(folder), "MNIST"
    else:
        arrays, made_by = bnn.simulate(settings["simulated"]), "sgtune.study.posteriors.bnn.simulate"
    facts = {
        "n_hidden": settings["n_hidden"],
        "made_by": made_by,
        "model": "bnn",
        "provenance": this.account(),
    }
    bnn.DATA.write(snakemake.output.facts, arrays, **facts)
