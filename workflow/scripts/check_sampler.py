"""Check chains of a tuned sampler, parameter by parameter."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.check import check_tuned
    from sgtune.study.ground_truth.draws import flat_draws, read_draws

    tuned = this.read(snakemake.input.tuning, snakemake.params.tuning_settings)["tuners"]
    task, path = this.task(), this.file("draws")
    draws = None if path is None else flat_draws(read_draws(path)).reshape(-1, task.model.dimension)
    record = check_tuned(task, tuned, this.settings["evaluation"], draws)
    for line in record["warnings"]:
        this.warn(line)
    this.write(snakemake.output.checks, {**task.names, **record})
