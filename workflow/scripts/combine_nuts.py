"""Combine the chains of NUTS and write their diagnostics."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    import json

    from sgtune.study.ground_truth.diagnostics import doubts, reference_record
    from sgtune.study.ground_truth.draws import combine_chains, read_draws, write_draws

    data_set = snakemake.params.get("data_set")
    name, section = (
        (data_set, "ccadl.logistic.reference") if data_set else (snakemake.wildcards.model, "reference")
    )
    chains = [read_draws(path) for path in snakemake.input.chains]
    accounts = [json.loads(chain.posterior.attrs["provenance"]) for chain in chains]
    draws = combine_chains(chains)
    draws.posterior.attrs["provenance"] = json.dumps(this.account())
    record = reference_record(draws)
    this.report(str(record["diagnostics"]))
    if doubted := doubts(record):
        this.warn(
            f"the draws of {name} are no ground truth to trust: {doubted}; "
            f"{section}.n_draws, n_warmup and max_tree_depth say how much is drawn"
        )
    write_draws(snakemake.output.draws, draws)
    this.write(snakemake.output.facts, {"model": name, **record, "chains": accounts})
