"""Sample mean and precision of a normal by one sampler, and compare the draws with the exact posterior."""

from sgtune.study.job import job

with job(snakemake) as this:
    from sgtune.sampling.compilation import watch_compilation
    from sgtune.study.ccadl.normal import sample_normal
    from sgtune.study.parts import Parts

    watch_compilation()
    parts = Parts(snakemake.params.parts, this.report)
    record = sample_normal(
        snakemake.wildcards.method,
        this.settings["ccadl"]["normal"],
        seed=this.seed,
        parts=parts,
        report=this.report,
    )
    this.write(snakemake.output.normal, record)
    parts.clear()
