"""Logistic regression by one sampler: test log-likelihood against passes over the data."""

from sgtune.study.job import job

with job(snakemake) as this:
    from sgtune.study.ccadl.logistic import sample_curves
    from sgtune.study.parts import Parts

    model = this.load_set_model("mnist79", snakemake.input.data)
    parts = Parts(snakemake.params.parts, this.report)
    settings = this.settings["ccadl"]["logistic"]
    record = sample_curves(
        snakemake.wildcards.method, model, settings, seed=this.seed, parts=parts, report=this.report
    )
    this.write(snakemake.output.curves, record)
    parts.clear()
