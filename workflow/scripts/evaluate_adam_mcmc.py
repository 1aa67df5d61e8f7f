"""Tune one sampler by the default tuner, run the chosen arms for equal seconds, and judge their draws."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.adam_mcmc.races import evaluate_sampler

    own = this.settings["adam_mcmc"]
    task = this.task("logistic", sampler=snakemake.wildcards.kernel, grid=own["grid"])
    record = evaluate_sampler(task, own["evaluation"], own["race"]["pruning_rate"])
    this.write(snakemake.output.evaluation, {**task.names, "dimension": task.model.dimension, **record})
