"""Tune one sampler with one tuner."""

from sgtune.workflow import job, tuning_arguments

with job(snakemake) as this:
    from pathlib import Path

    from sgtune.budget import CostTable
    from sgtune.models import load_model
    from sgtune.tuning import tune

    model = load_model(snakemake.wildcards.model, Path(snakemake.input.data).parent)
    cost = CostTable.from_rows(this.read(snakemake.input.cost, snakemake.params.cost_settings)["rows"])
    result = tune(
        model,
        snakemake.wildcards.sampler,
        seed=this.seed,
        cost=cost,
        report=this.report,
        **tuning_arguments(this.settings, snakemake.wildcards.tuner),
    )
    record = result.to_dict() | {"tuner": snakemake.wildcards.tuner}
    # A user waits for the start-up too, and for compilation: both are in the total.
    record["seconds"]["startup"] = this.seconds_since_start() - record["seconds"]["total"]
    record["seconds"]["total"] = this.seconds_since_start()
    this.report(f"best: {record['best']}, {record['seconds']['total']:.1f} s in all")
    this.write(snakemake.output.tuning, record)
