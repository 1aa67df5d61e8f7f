"""Sample one chain of NUTS in checkpointed blocks."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    import json

    from sgtune.study.ground_truth.draws import write_draws
    from sgtune.study.ground_truth.nuts import sample_nuts

    settings = this.settings["reference"]
    model = this.load_model(snakemake.params.get("data_set"))
    draws = sample_nuts(
        model,
        n_warmup=settings["n_warmup"],
        n_draws=settings["n_draws"] // settings["chains"],
        seed=this.seed,
        chain=int(snakemake.wildcards.chain),
        checkpoint_dir=snakemake.params.checkpoints,
        block=settings["block"],
        max_tree_depth=settings["max_tree_depth"],
    )
    draws.posterior.attrs["provenance"] = json.dumps(this.account())
    write_draws(snakemake.output.draws, draws)
