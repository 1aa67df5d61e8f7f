"""List a run's artifacts with their checksums."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False) as this:
    from sgtune.study.report.publish import artifact_files
    from sgtune.support.files import file_sha256

    root, files = artifact_files(snakemake.input)
    this.write(
        snakemake.output.manifest,
        {"files": {str(path.relative_to(root)): file_sha256(path) for path in files}},
    )
