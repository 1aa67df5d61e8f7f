"""Tune on Gaussians of one dimension, and compute the expected errors of the choices by theory."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.ladder import gaussian_ladder

    dimension = int(snakemake.wildcards.dimension)
    record = gaussian_ladder(dimension, this.settings, seed=this.seed, parts=this.parts)
    this.write(snakemake.output.ladder, record)
