"""Logistic regression by one sampler: long chains against NUTS."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.ccadl.classifiers import sample_draws

    model = this.load_model("mnist79")
    reference = this.read(snakemake.input.reference, snakemake.params.reference_settings)
    settings = this.settings["ccadl"]["logistic"]
    record = sample_draws(
        snakemake.wildcards.method, model, reference, settings, seed=this.seed, parts=this.parts
    )
    this.write(snakemake.output.draws, record)
