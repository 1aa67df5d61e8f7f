"""Run the best arms of a grid, and the chosen arms, in fresh replicates."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.finalists import rerun_finalists
    from sgtune.study.experiments.losses import losses_of
    from sgtune.study.experiments.tune import chosen_arms, facts_of

    files, sampler = snakemake.input, snakemake.wildcards.sampler
    model = this.load_model(snakemake.wildcards.model, files.data)
    record = this.reference_record()
    tuning = this.read(files.tuning, snakemake.params.tuning_settings)
    found = rerun_finalists(
        model,
        sampler,
        this.read(files.screen, snakemake.params.screen_settings),
        chosen_arms(tuning["tuners"]),
        grid=this.settings["grids"],
        losses=losses_of(model.name, this.reference(), this.settings["regret"]),
        section=this.settings["regret"],
        cost=this.cost_table(model),
        seed=this.seed,
        parts=this.parts,
        depends_on=this.depends_on("data", "map", "cost", "screen", "reference"),
        report=this.report,
    )
    facts = facts_of(tuning["tuners"])
    found["chosen"] = [{**one, **facts[one["tuner"]]} for one in found["chosen"]]
    trusted = {"trusted": None if record is None else record["trusted"]}
    this.write(
        snakemake.output.regret,
        {"model": model.name, "sampler": sampler, "n_data": model.n_data, **trusted, **found},
    )
