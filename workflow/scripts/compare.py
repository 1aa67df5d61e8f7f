"""Compare the tables of a finished run with the published ones, cell by cell."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from pathlib import Path

    from sgtune.study.report.publish import compare, published_folder
    from sgtune.support.errors import DataError

    if not Path("results", this.run).is_dir():
        raise DataError(f"results/{this.run}: there is no such run; the run must be finished")
    for study, folder in snakemake.params.published.items():
        run, published = Path("results", this.run, study), published_folder(Path.cwd(), folder)
        has_both = published.is_dir() and (run / "manifest.json").is_file()
        if run.is_dir() and not has_both:
            this.show(f"{run}: not finished, or none is published")
        elif run.is_dir():
            this.show(f"{run} and {published.relative_to(Path.cwd())}:")
            for line in compare(run, published):
                this.show(line)
