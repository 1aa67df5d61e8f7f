"""Tune one sampler with a defect of the code behind the paper, and run what was chosen."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from sgtune.study.audit.runs import audit_sampler

    task = this.task(model="logistic", sampler=snakemake.wildcards.kernel, grid={})
    record = audit_sampler(task, snakemake.wildcards.defect, this.settings)
    this.write(snakemake.output.audit, {**task.names, "task": task.model.task, **record})
