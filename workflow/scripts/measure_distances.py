"""Total variation to the target against the number of steps, for MALA and AdamMCMC."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.sampling.compilation import watch_compilation
    from sgtune.study.adam_mcmc.distances import measure_distances

    watch_compilation()
    settings = this.settings["adam_mcmc"]["distances"]
    this.write(snakemake.output.distances, measure_distances(settings, seed=this.seed, report=this.report))
