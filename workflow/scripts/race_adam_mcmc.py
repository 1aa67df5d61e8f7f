"""Race a sampler with a Metropolis test by several judges, and measure the expected regret of their choices."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.adam_mcmc.races import race_sampler

    own = this.settings["adam_mcmc"]
    task = this.task("logistic", sampler=snakemake.wildcards.kernel, grid=own["grid"])
    record = race_sampler(task, own["race"])
    record["trusted"] = this.reference_record()["trusted"]
    this.write(snakemake.output.races, {**task.names, "grid": own["grid"], **record})
