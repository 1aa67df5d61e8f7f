"""Find the MAP of a model and keep it beside its data."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.metrics import at_position
    from sgtune.mode.curvature import laplace_scale, laplace_sd
    from sgtune.mode.find import map_result

    model = this.load_model()
    found = map_result(model, **this.settings["map"])
    if not found.converged:
        this.warn(
            f"the MAP of {model.name} has not converged: its Newton step is {found.distance:.3g} sd; map.epochs and "
            "map.max_steps say how long it is looked for"
        )
    laplace_scale(model)
    facts = {name: value for name, value in found._asdict().items() if name != "position"}
    facts |= {"laplace_sd": laplace_sd(model), "test": at_position(model, found.position)}
    this.report(f"at the MAP: {facts['test']}")
    this.write(snakemake.output.facts, {"model": model.name, **facts})
