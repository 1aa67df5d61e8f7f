"""Sample one posterior of users by NUTS, and keep the moments."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    import numpy as np

    from sgtune.mode.coordinates import laplace_preconditioner, precondition
    from sgtune.study.ground_truth.diagnostics import doubts, reference_record
    from sgtune.study.ground_truth.draws import combine_chains, flat_draws
    from sgtune.study.ground_truth.nuts import sample_nuts
    from sgtune.study.user_posteriors.cases import case_model
    from sgtune.study.user_posteriors.races import Truth
    from sgtune.support.files import atomic_write

    name, settings = snakemake.wildcards.case, this.settings["reference"]
    # In coordinates in which float32 knows all directions: a mass matrix of raw columns is no better than its rounding.
    model = case_model(name)
    system = laplace_preconditioner(model)
    seen = precondition(model, system)
    chains = [
        sample_nuts(
            seen,
            n_warmup=settings["n_warmup"],
            n_draws=settings["n_draws"] // settings["chains"],
            seed=this.seed,
            chain=chain,
            checkpoint_dir=f"{snakemake.params.checkpoints}/{chain}",
            block=settings["block"],
            max_tree_depth=settings["max_tree_depth"],
        )
        for chain in range(settings["chains"])
    ]
    draws = combine_chains(chains)
    facts = {key: value for key, value in reference_record(draws).items() if key != "covariance"}
    if doubted := doubts(facts):
        this.warn(f"the draws of {name} are no ground truth to trust: {doubted}; see posteriors.reference")
    with atomic_write(snakemake.output.moments) as path:
        truth = Truth.of_chains([system.positions(chain) for chain in flat_draws(draws)])
        np.savez(path, **truth._asdict())
    this.write(snakemake.output.facts, {"case": name, **facts})
