"""Tune one model's samplers for runs of several lengths, and run the chosen arms for the longest."""

from sgtune.study.job import job

with job(snakemake) as this:
    from sgtune.files import file_sha256
    from sgtune.study.horizons import compare_horizons
    from sgtune.study.parts import Parts

    files = snakemake.input
    model = this.load_model(snakemake.wildcards.model, files.data)
    record = this.reference_record(files.reference, snakemake.params.reference_settings)
    parts = Parts(snakemake.params.parts, this.report)
    found = compare_horizons(
        model,
        this.settings,
        reference=this.reference(files.reference, snakemake.params.reference_settings),
        cost=this.cost_table(files.cost, model, snakemake.params.cost_settings),
        seed=this.seed,
        parts=parts,
        inputs={path: file_sha256(path) for path in (files.data, files.map, files.cost, files.reference)},
        report=this.report,
    )
    about = {"model": model.name, "n_data": model.n_data, "trusted": record["trusted"]}
    this.write(snakemake.output.horizons, {**about, **found})
    parts.clear()
