"""Put the measured costs of all models into one file that another run can be given."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    models = {}
    for path in snakemake.input.costs:
        measured = this.read(path)
        models[measured["model"]] = {name: measured[name] for name in ("n_data", "dimension", "rows")}
    this.write(snakemake.output.table, {"models": models})
