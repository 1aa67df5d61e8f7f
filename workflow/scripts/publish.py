"""Copy a finished study's artifacts to the tracked folder; README shows the main ones."""

from sgtune.study.pipeline.job import job

with job(snakemake):
    from pathlib import Path

    from sgtune.study.report.publish import (
        IN_README,
        MAIN_RUN,
        publish,
        published_folder,
        read_captions,
        show_results,
    )
    from sgtune.study.studies import STUDIES

    root, folder = Path.cwd(), snakemake.params.folder
    destination = published_folder(root, folder).resolve()
    publish(Path(snakemake.input[0]), destination, STUDIES[snakemake.params.study], read_captions(root))
    main = published_folder(root, MAIN_RUN).resolve()
    if folder in IN_README and main.is_dir():
        show_results(root.resolve() / "README.md", main, STUDIES["audit"])
