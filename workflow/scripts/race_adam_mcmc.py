"""Race a sampler with a Metropolis test by several judges, and measure the expected regret of their choices."""

from sgtune.study.job import job

with job(snakemake) as this:
    from sgtune.files import file_sha256
    from sgtune.study.adam_mcmc.races import race_sampler
    from sgtune.study.parts import Parts

    files, sampler = snakemake.input, snakemake.wildcards.kernel
    model = this.load_model("logistic", files.data)
    own = this.settings["adam_mcmc"]
    reference = next(iter(files.reference), None)
    inputs = [path for path in (files.data, files.map, files.cost, reference) if path is not None]
    parts = Parts(snakemake.params.parts, this.report)
    record = race_sampler(
        model,
        sampler,
        own["grid"],
        own["race"],
        reference=this.reference(reference, snakemake.params.reference_settings),
        cost=this.cost_table(files.cost, model, snakemake.params.cost_settings),
        seed=this.seed,
        parts=parts,
        depends_on={"settings": this.settings, "inputs": {path: file_sha256(path) for path in inputs}},
        report=this.report,
    )
    known = this.reference_record(reference, snakemake.params.reference_settings)
    record["trusted"] = known is not None and known["trusted"]
    names = {"model": model.name, "sampler": sampler, "n_data": model.n_data, "grid": own["grid"]}
    this.write(snakemake.output.races, {**names, **record})
    parts.clear()
