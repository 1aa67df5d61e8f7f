"""Sample mean and precision of a normal by one sampler, and compare the draws with the exact posterior."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.ccadl.normal import sample_normal
    from sgtune.support.machine import watch_compilation

    watch_compilation()
    settings = this.settings["ccadl"]["normal"]
    record = sample_normal(snakemake.wildcards.method, settings, seed=this.seed, parts=this.parts)
    this.write(snakemake.output.normal, record)
