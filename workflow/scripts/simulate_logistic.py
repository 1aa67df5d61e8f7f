"""Simulate the logistic regression data set."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.posteriors import logistic

    settings = this.settings["data"]["logistic"]
    arrays = logistic.simulate(**settings)
    facts = {"made_by": "sgtune.study.posteriors.logistic.simulate", "seed": settings["seed"]}
    facts |= {"model": "logistic", "provenance": this.account()}
    logistic.DATA.write(snakemake.output.facts, arrays, **facts)
