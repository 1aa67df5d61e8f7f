"""Combine the chains of NUTS and write their diagnostics."""

from sgtune.workflow import job

with job(snakemake) as this:
    import json

    from sgtune.reference.nuts import combine_chains, diagnostics, read_draws, summary, write_draws

    draws = combine_chains([read_draws(path) for path in snakemake.input.chains])
    draws.posterior.attrs["provenance"] = json.dumps(this.provenance.finish())
    mean, sd = summary(draws)
    checks = diagnostics(draws)
    this.report(str(checks))
    write_draws(snakemake.output.draws, draws)
    record = {"model": snakemake.wildcards.model, "mean": mean, "sd": sd, "diagnostics": checks}
    this.write(snakemake.output.facts, record)
