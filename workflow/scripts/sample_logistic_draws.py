"""Logistic regression by one sampler: long chains against NUTS."""

from sgtune.study.job import job

with job(snakemake) as this:
    from sgtune.study.ccadl.logistic import Truth, sample_draws
    from sgtune.study.parts import Parts

    model = this.load_set_model("mnist79", snakemake.input.data)
    truth = Truth.from_record(this.read(snakemake.input.reference, snakemake.params.reference_settings))
    parts = Parts(snakemake.params.parts, this.report)
    settings = this.settings["ccadl"]["logistic"]
    record = sample_draws(
        snakemake.wildcards.method, model, truth, settings, seed=this.seed, parts=parts, report=this.report
    )
    this.write(snakemake.output.draws, record)
    parts.clear()
