"""Tune one sampler on one posterior of users by all tuners, and judge fresh chains of their choices."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.pipeline.parts import Task
    from sgtune.study.user_posteriors.cases import case_model
    from sgtune.study.user_posteriors.races import Truth, race_case
    from sgtune.support.files import file_sha256, read_npz
    from sgtune.support.machine import watch_compilation

    watch_compilation()
    path = snakemake.input.moments
    task = Task(
        case_model(snakemake.wildcards.case),
        snakemake.wildcards.kernel,
        seed=this.seed,
        parts=this.parts,
        depends_on={"settings": this.settings, "moments": file_sha256(path)},
    )
    record = race_case(task, Truth(**read_npz(path)), this.settings["posteriors"])
    this.write(snakemake.output.races, record)
