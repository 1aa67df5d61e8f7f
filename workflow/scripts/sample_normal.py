"""Sample mean and precision of a normal by one sampler, and compare the draws with the exact posterior."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.ccadl.normal import sample_normal
    from sgtune.support.machine import watch_compilation

    watch_compilation()
    record = sample_normal(
        snakemake.wildcards.method,
        this.settings["ccadl"]["normal"],
        seed=this.seed,
        parts=this.parts,
        report=this.report,
    )
    this.write(snakemake.output.normal, record)
