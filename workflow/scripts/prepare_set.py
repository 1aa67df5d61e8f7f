"""Prepare a data set of the CCAdL paper, or simulate a similar one, or record why it is unavailable."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from pathlib import Path

    from sgtune.study.posteriors import classification
    from sgtune.support.files import read_json

    name, facts = snakemake.wildcards.set, snakemake.output.facts
    n_simulated = this.settings["ccadl"]["data"]["simulated"]
    source = None if n_simulated else read_json(snakemake.input[0])
    if source and source["missing"]:
        this.warn(f"{name}: the study goes on without it: {source['missing']}")
        this.write(facts, {"set": name, "missing": source["missing"]})
    else:
        if source:
            arrays = classification.read_set(name, Path(snakemake.input[0]).parent)
            made_by = f"{source['name']} from {source['source']}"
        else:
            arrays = classification.simulate(name, n_simulated)
            made_by = "sgtune.study.posteriors.classification.simulate"
        origin = {"made_by": made_by, "model": name, "provenance": this.account()}
        classification.SETS[name].data.write(facts, arrays, **origin)
