"""Tune one sampler with each of its tuners."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.tune import tune_sampler

    task = this.task()
    records = tune_sampler(task, this.settings, startup=this.startup, warn=this.warn)
    this.write(snakemake.output.tuning, {**task.names, "tuners": records})
