"""Run what a sampler's tuners chose, and judge what it gives."""

from sgtune.study.job import job

with job(snakemake) as this:
    import numpy as np

    from sgtune.files import file_sha256
    from sgtune.study.parts import Parts
    from sgtune.study.per_sampler import evaluate_tuned

    files = snakemake.input
    # Models without out-of-distribution inputs, without a reference or without a given table have no such input file.
    ood, table, reference = (next(iter(files.get(name)), None) for name in ("ood", "table", "reference"))
    model = this.load_model(snakemake.wildcards.model, files.data, ood=ood)
    tuning = this.read(files.tuning, snakemake.params.tuning_settings)
    reference_sd = None
    if reference is not None:
        reference_sd = np.array(this.read(reference, snakemake.params.reference_settings)["sd"])
    inputs = [
        path for path in (files.data, files.map, files.laplace, ood, table, reference) if path is not None
    ]
    parts = Parts(snakemake.params.parts, this.report)
    record = evaluate_tuned(
        model,
        snakemake.wildcards.sampler,
        {tuned["tuner"]: tuned["best"] for tuned in tuning["tuners"]},
        this.settings["evaluation"],
        reference_sd=reference_sd,
        cost=None if table is None else this.cost_table(table, model),
        seed=this.seed,
        parts=parts,
        depends_on={"settings": this.settings, "inputs": {path: file_sha256(path) for path in inputs}},
        report=this.report,
    )
    names = {"model": model.name, "sampler": snakemake.wildcards.sampler, "n_data": model.n_data}
    names["task"] = model.task
    reasons = {tuned["tuner"]: tuned["reason"] for tuned in tuning["tuners"]}
    record["tuners"] = [{**one, "reason": reasons[one["tuner"]]} for one in record["tuners"]]
    this.write(snakemake.output.evaluation, {**names, **record})
    parts.clear()
