"""Run the arms that a sampler's tuners chose, and judge their draws."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.evaluate import evaluate_tuned
    from sgtune.study.experiments.tune import chosen_arms, facts_of

    files = snakemake.input
    model = this.load_model(snakemake.wildcards.model, files.data, ood=this.file("ood"))
    tuning = this.read(files.tuning, snakemake.params.tuning_settings)
    record = evaluate_tuned(
        model,
        snakemake.wildcards.sampler,
        chosen_arms(tuning["tuners"]),
        this.settings["evaluation"],
        reference=this.reference(),
        cost=this.cost_table(model),
        seed=this.seed,
        parts=this.parts,
        depends_on=this.depends_on("data", "map", "laplace", "ood", "cost", "reference"),
        report=this.report,
    )
    names = {"model": model.name, "sampler": snakemake.wildcards.sampler, "n_data": model.n_data}
    names["task"] = model.task
    facts = facts_of(tuning["tuners"])
    record["tuners"] = [{**one, **facts[one["tuner"]]} for one in record["tuners"]]
    this.write(snakemake.output.evaluation, {**names, **record})
