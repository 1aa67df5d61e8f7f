"""Copy a finished run's artifacts to the tracked folder."""

from sgtune.workflow import job

with job(snakemake) as this:
    from pathlib import Path

    from sgtune.workflow import publish

    publish(Path(snakemake.input[0]), Path("results", "published"))
