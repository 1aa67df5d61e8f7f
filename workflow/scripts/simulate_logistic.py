"""Simulate the logistic regression data set."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False) as this:
    from sgtune.study.posteriors import logistic

    settings, facts = this.settings["data"]["logistic"], snakemake.output.facts
    arrays = logistic.simulate(**settings)
    logistic.DATA.write(
        facts, arrays, made_by="sgtune.study.posteriors.logistic.simulate", seed=settings["seed"]
    )
    this.sign(facts, "logistic")
