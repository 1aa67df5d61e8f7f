"""Copy a finished study's artifacts to the tracked folder; README shows the main ones of two studies."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False):
    from pathlib import Path

    from sgtune.study.report.publish import IN_README, MAIN, publish, published_folder, show_results

    study = snakemake.params.study
    root = Path.cwd()
    publish(Path(snakemake.input[0]), published_folder(root, study).resolve())
    main = published_folder(root, MAIN).resolve()
    if study in IN_README and main.is_dir():
        show_results(root.resolve() / "README.md", main)
