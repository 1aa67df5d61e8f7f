"""Estimate the KSD of SGLD chains in four ways."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.discrepancies import estimate_discrepancies

    task = this.task()
    rows = estimate_discrepancies(task, this.settings["estimates"])
    names = {"model": task.model.name, "n_data": task.model.n_data}
    this.write(snakemake.output.estimates, {**names, "rows": rows})
