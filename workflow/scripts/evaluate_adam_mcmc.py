"""Tune one sampler by the default tuner, run the chosen arms for equal seconds, and judge their draws."""

from sgtune.study.job import job

with job(snakemake) as this:
    from sgtune.files import file_sha256
    from sgtune.study.adam_mcmc.evaluations import evaluate_sampler
    from sgtune.study.parts import Parts

    files, sampler = snakemake.input, snakemake.wildcards.kernel
    model = this.load_model(snakemake.wildcards.model, files.data)
    own = this.settings["adam_mcmc"]
    reference = next(iter(files.reference), None)
    inputs = [path for path in (files.data, files.map, files.cost, reference) if path is not None]
    parts = Parts(snakemake.params.parts, this.report)
    record = evaluate_sampler(
        model,
        sampler,
        own["grid"],
        own["evaluation"],
        pruning_rate=own["race"]["pruning_rate"],
        reference=this.reference(reference, snakemake.params.reference_settings),
        cost=this.cost_table(files.cost, model, snakemake.params.cost_settings),
        seed=this.seed,
        parts=parts,
        depends_on={"settings": this.settings, "inputs": {path: file_sha256(path) for path in inputs}},
        report=this.report,
    )
    names = {"model": model.name, "sampler": sampler, "n_data": model.n_data, "dimension": model.dimension}
    this.write(snakemake.output.evaluation, {**names, **record})
    parts.clear()
