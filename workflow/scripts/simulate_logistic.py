"""Simulate the logistic regression data set."""

from sgtune.workflow import job

with job(snakemake) as this:
    from sgtune.data import logistic

    settings = this.settings["data"]["logistic"]
    logistic.write(snakemake.output.facts, logistic.simulate(**settings), seed=settings["seed"])
    this.sign(snakemake.output.facts, "logistic")
