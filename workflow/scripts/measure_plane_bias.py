"""The bias of AdamMCMC's approximation on targets in the plane against gamma / s."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.adam_mcmc.plane_bias import measure_plane_bias
    from sgtune.support.machine import watch_compilation

    watch_compilation()
    settings = this.settings["adam_mcmc"]["bias"]
    this.write(snakemake.output.plane_bias, measure_plane_bias(settings, seed=this.seed, report=this.report))
