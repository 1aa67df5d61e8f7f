"""Simulate the logistic regression data set."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False) as this:
    from sgtune.study.posteriors import logistic_data as logistic

    settings = this.settings["data"]["logistic"]
    logistic.write(snakemake.output.facts, logistic.simulate(**settings), seed=settings["seed"])
    this.sign(snakemake.output.facts, "logistic")
