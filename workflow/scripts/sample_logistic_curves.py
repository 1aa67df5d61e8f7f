"""Logistic regression by one sampler: test log-likelihood against passes over the data."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.ccadl.classifiers import sample_curves

    model = this.load_model("mnist79")
    settings = this.settings["ccadl"]["logistic"]
    record = sample_curves(snakemake.wildcards.method, model, settings, seed=this.seed, parts=this.parts)
    this.write(snakemake.output.curves, record)
