"""Tune one sampler with each of its tuners."""

from sgtune.study.job import job

with job(snakemake) as this:
    from sgtune.files import file_sha256
    from sgtune.study.parts import Parts
    from sgtune.study.per_sampler import tune_sampler

    files = snakemake.input
    model = this.load_model(snakemake.wildcards.model, files.data)
    parts = Parts(snakemake.params.parts, this.report)
    records = tune_sampler(
        model,
        snakemake.wildcards.sampler,
        this.settings,
        cost=this.cost_table(files.cost, model, snakemake.params.cost_settings),
        seed=this.seed,
        parts=parts,
        inputs={name: file_sha256(files[name]) for name in ("data", "map", "laplace", "cost")},
        startup=this.startup,
        report=this.report,
        warn=this.warn,
    )
    names = {"model": model.name, "sampler": snakemake.wildcards.sampler, "n_data": model.n_data}
    this.write(snakemake.output.tuning, {**names, "tuners": records})
    parts.clear()
