"""List a study's artifacts with their checksums."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False) as this:
    from sgtune.study.report.publish import checksums

    this.write(snakemake.output.manifest, {"files": checksums(snakemake.input)})
