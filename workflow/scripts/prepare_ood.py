"""Prepare or simulate the out-of-distribution images, or record why they are unavailable."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False) as this:
    from pathlib import Path

    from sgtune.study.posteriors import mnist
    from sgtune.study.posteriors import ood_images as ood

    n_simulated = this.settings["data"]["bnn"]["simulated"]
    if n_simulated is None:
        images, made_by = ood.read_set(Path(snakemake.input[0]).parent), "the rule download_ood"
    else:
        images, made_by = mnist.simulate(n_simulated)["ood"], "sgtune.study.posteriors.mnist.simulate"
    ood.write(snakemake.output.facts, images, made_by=made_by)
    this.sign(snakemake.output.facts, "bnn")
