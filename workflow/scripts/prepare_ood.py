"""Prepare or simulate the out-of-distribution images, or record why they are unavailable."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from pathlib import Path

    from sgtune.study.posteriors import bnn

    n_simulated = this.settings["data"]["bnn"]["simulated"]
    if n_simulated is None:
        images, made_by = bnn.read_ood(Path(snakemake.input[0]).parent), "the rule download_ood"
    else:
        images, made_by = bnn.simulate(n_simulated)["ood"], "sgtune.study.posteriors.bnn.simulate"
    facts = {"made_by": made_by, "model": "bnn", "provenance": this.account()}
    bnn.write_ood(snakemake.output.facts, images, **facts)
