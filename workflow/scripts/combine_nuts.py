"""Combine the chains of NUTS and write their diagnostics."""

from sgtune.study.job import job

with job(snakemake) as this:
    import json

    from sgtune.study.ground_truth.nuts import (
        R_HAT_TRUSTED,
        by_block,
        combine_chains,
        convergence,
        diagnostics,
        read_draws,
        summary,
        write_draws,
    )

    chains = [read_draws(path) for path in snakemake.input.chains]
    accounts = [json.loads(chain.posterior.attrs["provenance"]) for chain in chains]
    draws = combine_chains(chains)
    draws.posterior.attrs["provenance"] = json.dumps(this.account())
    mean, sd = summary(draws)
    checked = convergence(draws)
    checks = diagnostics(draws, checked)
    this.report(str(checks))
    if checks["n_parameters_stuck"] or not checks["r_hat"] < R_HAT_TRUSTED:
        this.warn(
            f"the draws of {snakemake.wildcards.model} are no ground truth to trust: worst R-hat "
            f"{checks['r_hat']:.3g}, {checks['n_parameters_stuck']:,} parameters that never moved in a chain; "
            "reference.n_draws, n_warmup and max_tree_depth say how much is drawn"
        )
    write_draws(snakemake.output.draws, draws)
    record = {"model": snakemake.wildcards.model, "mean": mean, "sd": sd, "diagnostics": checks}
    record |= {"blocks": by_block(draws, checked), "chains": accounts}
    this.write(snakemake.output.facts, record)
