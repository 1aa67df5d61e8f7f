"""The discriminative RBM of one data set by one sampler: test error against passes over the data."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.support.files import read_json

    data_set, method = snakemake.wildcards.set, snakemake.wildcards.method
    if reason := read_json(snakemake.input.data).get("missing"):
        this.write(snakemake.output.errors, {"set": data_set, "method": method, "missing": reason})
    else:
        from sgtune.study.ccadl.classifiers import sample_errors

        model = this.load_model(data_set)
        settings = this.settings["ccadl"]["drbm"]
        record = sample_errors(data_set, method, model, settings, seed=this.seed, parts=this.parts)
        this.write(snakemake.output.errors, record)
