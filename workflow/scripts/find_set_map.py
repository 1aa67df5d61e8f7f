"""Find the MAP of a data set's model, keep it beside the data, and say how well it predicts."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.metrics import at_position
    from sgtune.mode.find import map_result
    from sgtune.support.files import read_json

    name = snakemake.wildcards.set
    if reason := read_json(snakemake.input.data).get("missing"):
        this.write(snakemake.output.facts, {"set": name, "missing": reason})
    else:
        model = this.load_model(name)
        found = map_result(model, **this.settings["map"])
        if not found.converged:
            this.warn(
                f"the MAP of {model.name} has not converged: its Newton step is {found.distance:.3g} sd"
            )
        facts = {key: value for key, value in found._asdict().items() if key != "position"}
        facts |= {"set": name, "missing": None, "test": at_position(model, found.position)}
        if isinstance(found.position, dict):
            from sgtune.study.ccadl.classifiers import sizes_of

            facts |= sizes_of(model)
        this.write(snakemake.output.facts, facts)
