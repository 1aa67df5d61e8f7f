"""List a run's artifacts with their checksums."""

from sgtune.study.job import job

with job(snakemake, saved=False) as this:
    from sgtune.files import file_sha256
    from sgtune.study.publish import artifact_files

    root, files = artifact_files(snakemake.input)
    this.write(
        snakemake.output.manifest,
        {"files": {str(path.relative_to(root)): file_sha256(path) for path in files}},
    )
