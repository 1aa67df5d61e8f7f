"""Print the expected time of the run."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False) as this:
    from sgtune.study.catalogue import MODELS
    from sgtune.study.pipeline.forecast import forecast, read_costs_of, read_last_run
    from sgtune.support.machine import cores

    config = snakemake.config
    costs = {model: read_costs_of(config, model) for model in config["models"]}
    n_data = {model: MODELS[model].n_data(config["data"][model]) for model in config["models"]}
    last = {model: read_last_run(model, n_data[model], costs[model]) for model in config["models"]}
    for line in forecast(config, costs, last).lines(cores() or 1):
        this.show(line)
