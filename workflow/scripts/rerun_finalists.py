"""Run the best arms of a grid, and the chosen arms, in fresh replicates."""

from sgtune.study.job import job

with job(snakemake) as this:
    from sgtune.files import file_sha256
    from sgtune.study.parts import Parts
    from sgtune.study.per_sampler import chosen_arms, facts_of
    from sgtune.study.screen import losses_of, rerun_finalists

    files, sampler = snakemake.input, snakemake.wildcards.sampler
    model = this.load_model(snakemake.wildcards.model, files.data)
    reference = next(iter(files.reference), None)
    record = this.reference_record(reference, snakemake.params.reference_settings)
    inputs = [
        path for path in (files.data, files.map, files.cost, files.screen, reference) if path is not None
    ]
    parts = Parts(snakemake.params.parts, this.report)
    tuning = this.read(files.tuning, snakemake.params.tuning_settings)
    found = rerun_finalists(
        model,
        sampler,
        this.read(files.screen, snakemake.params.screen_settings),
        chosen_arms(tuning["tuners"]),
        grid=this.settings["grids"],
        losses=losses_of(
            model.name,
            this.reference(reference, snakemake.params.reference_settings),
            this.settings["regret"],
        ),
        section=this.settings["regret"],
        cost=this.cost_table(files.cost, model, snakemake.params.cost_settings),
        seed=this.seed,
        parts=parts,
        depends_on={"settings": this.settings, "inputs": {path: file_sha256(path) for path in inputs}},
        report=this.report,
    )
    facts = facts_of(tuning["tuners"])
    found["chosen"] = [{**one, **facts[one["tuner"]]} for one in found["chosen"]]
    trusted = {"trusted": None if record is None else record["trusted"]}
    this.write(
        snakemake.output.regret,
        {"model": model.name, "sampler": sampler, "n_data": model.n_data, **trusted, **found},
    )
    parts.clear()
