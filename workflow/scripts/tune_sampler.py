"""Tune one sampler with each of its tuners."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.tune import tune_sampler
    from sgtune.support.files import file_sha256

    files = snakemake.input
    model = this.load_model(snakemake.wildcards.model, files.data)
    records = tune_sampler(
        model,
        snakemake.wildcards.sampler,
        this.settings,
        cost=this.cost_table(model),
        seed=this.seed,
        parts=this.parts,
        inputs={name: file_sha256(files[name]) for name in ("data", "map", "laplace", "cost")},
        startup=this.startup,
        report=this.report,
        warn=this.warn,
    )
    names = {"model": model.name, "sampler": snakemake.wildcards.sampler, "n_data": model.n_data}
    this.write(snakemake.output.tuning, {**names, "tuners": records})
