"""Run a tuned sampler by the wall clock and judge what it gives."""

from sgtune.workflow import job

with job(snakemake) as this:
    from pathlib import Path

    import numpy as np

    from sgtune.arm import Arm
    from sgtune.evaluation import evaluate
    from sgtune.models import load_model

    # Models without out-of-distribution inputs, or without a reference, have no such input file.
    ood = next(iter(snakemake.input.ood), None)
    model = load_model(snakemake.wildcards.model, Path(snakemake.input.data).parent, ood=ood)
    tuning = this.read(snakemake.input.tuning, snakemake.params.tuning_settings)
    references = [this.read(path, snakemake.params.reference_settings) for path in snakemake.input.reference]
    settings = this.settings["evaluation"]
    curves = settings["curves"]
    rows = evaluate(
        model,
        snakemake.wildcards.sampler,
        Arm(**tuning["best"]),
        reference_sd=np.array(references[0]["sd"]) if references else None,
        seconds=settings["seconds"],
        replicates=settings["replicates"],
        thin=settings["thin"],
        ksd_points=settings["ksd_points"],
        burn_in=settings["burn_in"],
        kept_draws=settings["kept_draws"],
        prediction_draws=settings["prediction_draws"],
        curve_seconds=curves["seconds"],
        curve_replicates=curves["replicates"],
        curve_points=curves["ksd_points"],
        curve_prediction_draws=curves["prediction_draws"],
        seed=this.seed,
        report=this.report,
    )
    names = {name: tuning[name] for name in ("model", "sampler", "tuner", "best", "n_data")}
    names["task"] = model.task
    this.write(snakemake.output.evaluation, {**names, **rows})
