"""Tune one model's samplers for runs of several lengths, and run the chosen arms for the longest."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.experiments.horizons import compare_horizons

    model = this.load_model(snakemake.wildcards.model, snakemake.input.data)
    record = this.reference_record()
    found = compare_horizons(
        model,
        this.settings,
        reference=this.reference(),
        cost=this.cost_table(model),
        seed=this.seed,
        parts=this.parts,
        inputs=this.checksums("data", "map", "cost", "reference"),
        report=this.report,
    )
    about = {"model": model.name, "n_data": model.n_data, "trusted": record["trusted"]}
    this.write(snakemake.output.horizons, {**about, **found})
