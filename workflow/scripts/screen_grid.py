"""Run every arm of a sampler's grid a few times, and the race of an oracle."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.losses import losses_of
    from sgtune.study.experiments.screen import screen_grid
    from sgtune.tuning import Settings, tuner_of

    sampler = snakemake.wildcards.sampler
    model = this.load_model(snakemake.wildcards.model, snakemake.input.data)
    regret, mamba = this.settings["regret"], this.settings["mamba"]
    record = screen_grid(
        model,
        sampler,
        grid=this.settings["grids"],
        extra=tuner_of("heuristic", Settings(**this.settings["heuristic"])).arms(model.n_data, sampler),
        losses=losses_of(model.name, this.reference(), regret),
        section=regret["screen"],
        oracle={name: mamba[name] for name in ("seconds", "pruning_rate")},
        n_oracles=this.settings["tuning"]["replicates"],
        oracle_losses=regret["screen"]["oracle_losses"],
        cost=this.cost_table(model),
        seed=this.seed,
        parts=this.parts,
        depends_on=this.depends_on("data", "map", "cost", "reference"),
        report=this.report,
    )
    this.write(
        snakemake.output.screen, {"model": model.name, "sampler": sampler, "n_data": model.n_data, **record}
    )
