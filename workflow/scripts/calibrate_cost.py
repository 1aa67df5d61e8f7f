"""Measure what a step of every shape in the grids costs."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.sampling.budget import read_costs
    from sgtune.study.pipeline.plan import shapes_of
    from sgtune.support.machine import product_seconds
    from sgtune.tuning import calibrate_cost

    model = this.load_model()
    # If the run uses a given table, its costs are recorded beside the measured ones.
    tables = [read_costs(path, model.name, model.n_data, model.dimension) for path in snakemake.input.table]
    cost = calibrate_cost(
        model,
        shapes_of(this.settings, model.n_data),
        seconds=this.settings["calibration"]["seconds"],
        report=this.report,
    )
    record = {"model": model.name, "n_data": model.n_data, "dimension": model.dimension}
    record["numpy_product_seconds"] = product_seconds()
    if tables:
        record["table"] = tables[0].to_rows()
    this.write(snakemake.output.cost, {**record, "rows": cost.to_rows()})
