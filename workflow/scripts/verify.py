"""Compare every file of a finished run with its manifests."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from pathlib import Path

    from sgtune.study.report.publish import verify
    from sgtune.study.studies import STUDIES
    from sgtune.support.errors import DataError

    run = Path("results", this.run)
    faults = verify(run, STUDIES)
    for line in faults:
        this.show(line)
    if faults:
        raise DataError(f"{run}: {len(faults)} files are not as its manifests have them")
    this.show(f"{run}: all files are as its manifests have them.")
