"""Copy a finished study's artifacts to the tracked folder; README shows the main ones of the main study."""

from sgtune.study.job import job

with job(snakemake, saved=False):
    from pathlib import Path

    from sgtune.study.publish import MAIN, publish, published_folder, show_results

    study = snakemake.params.study
    root = Path.cwd()
    published = published_folder(root, study).resolve()
    publish(Path(snakemake.input[0]), published)
    if study == MAIN:
        show_results(root.resolve() / "README.md", published)
