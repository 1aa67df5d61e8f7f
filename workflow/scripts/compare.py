"""Compare the tables of a finished run with the published ones, cell by cell."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False) as this:
    from pathlib import Path

    from sgtune.study.report.publish import compare, published_folder

    for study, folder in snakemake.params.published.items():
        run, published = Path("results", this.run, study), published_folder(Path.cwd(), folder)
        if run.is_dir():
            this.show(f"{run} and {published.relative_to(Path.cwd())}:")
            for line in compare(run, published):
                this.show(line)
