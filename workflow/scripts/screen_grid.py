"""Run every arm of a sampler's grid a few times, and the race of an oracle."""

from sgtune.study.job import job

with job(snakemake) as this:
    from sgtune.files import file_sha256
    from sgtune.study.parts import Parts
    from sgtune.study.screen import losses_of, screen_grid
    from sgtune.tuning import Settings
    from sgtune.tuning.tuners import TUNERS

    files, sampler = snakemake.input, snakemake.wildcards.sampler
    model = this.load_model(snakemake.wildcards.model, files.data)
    reference = next(iter(files.reference), None)
    regret, mamba = this.settings["regret"], this.settings["mamba"]
    inputs = [path for path in (files.data, files.map, files.cost, reference) if path is not None]
    parts = Parts(snakemake.params.parts, this.report)
    record = screen_grid(
        model,
        sampler,
        grid=this.settings["grids"],
        extra=TUNERS["heuristic"].arms(model.n_data, sampler, Settings(**this.settings["heuristic"])),
        losses=losses_of(model.name, this.reference(reference, snakemake.params.reference_settings), regret),
        section=regret["screen"],
        oracle={name: mamba[name] for name in ("seconds", "pruning_rate")},
        n_oracles=this.settings["tuning"]["replicates"],
        cost=this.cost_table(files.cost, model, snakemake.params.cost_settings),
        seed=this.seed,
        parts=parts,
        depends_on={"settings": this.settings, "inputs": {path: file_sha256(path) for path in inputs}},
        report=this.report,
    )
    this.write(
        snakemake.output.screen, {"model": model.name, "sampler": sampler, "n_data": model.n_data, **record}
    )
    parts.clear()
