"""Run the arms that a sampler's tuners chose, and judge their draws."""

from sgtune.study.job import job

with job(snakemake) as this:
    from sgtune.files import file_sha256
    from sgtune.study.parts import Parts
    from sgtune.study.per_sampler import chosen_arms, evaluate_tuned, facts_of

    files = snakemake.input
    # Models without out-of-distribution inputs or without a reference, and runs by the clock, have no such input file.
    ood, cost, reference = (next(iter(files.get(name)), None) for name in ("ood", "cost", "reference"))
    model = this.load_model(snakemake.wildcards.model, files.data, ood=ood)
    tuning = this.read(files.tuning, snakemake.params.tuning_settings)
    inputs = [
        path for path in (files.data, files.map, files.laplace, ood, cost, reference) if path is not None
    ]
    parts = Parts(snakemake.params.parts, this.report)
    record = evaluate_tuned(
        model,
        snakemake.wildcards.sampler,
        chosen_arms(tuning["tuners"]),
        this.settings["evaluation"],
        reference=this.reference(reference, snakemake.params.reference_settings),
        cost=None if cost is None else this.cost_table(cost, model, snakemake.params.cost_settings),
        seed=this.seed,
        parts=parts,
        depends_on={"settings": this.settings, "inputs": {path: file_sha256(path) for path in inputs}},
        report=this.report,
    )
    names = {"model": model.name, "sampler": snakemake.wildcards.sampler, "n_data": model.n_data}
    names["task"] = model.task
    facts = facts_of(tuning["tuners"])
    record["tuners"] = [{**one, **facts[one["tuner"]]} for one in record["tuners"]]
    this.write(snakemake.output.evaluation, {**names, **record})
    parts.clear()
