"""Total variation to the target against the number of steps, for MALA and AdamMCMC."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.adam_mcmc.distances import measure_distances
    from sgtune.support.machine import watch_compilation

    watch_compilation()
    settings = this.settings["adam_mcmc"]["distances"]
    this.write(snakemake.output.distances, measure_distances(settings, seed=this.seed, report=this.report))
