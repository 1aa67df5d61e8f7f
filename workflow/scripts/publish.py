"""Copy a finished run's artifacts to the tracked folder, and show the main ones in the README."""

from sgtune.study.job import job

with job(snakemake, saved=False):
    from pathlib import Path

    from sgtune.study.publish import publish, show_results

    published = Path("results", "published").resolve()
    publish(Path(snakemake.input[0]), published)
    show_results(published.parent.parent / "README.md", published)
