"""List a study's artifacts, and all results of the run that are not of another study, with their checksums."""

from sgtune.study.pipeline.job import job

with job(snakemake) as this:
    from pathlib import Path

    from sgtune.study.report.publish import checksums, sums_of_run
    from sgtune.study.studies import MAIN, STUDIES

    study, run = snakemake.wildcards.study, Path("results", this.run)
    if study == MAIN:
        results = sums_of_run(run, STUDIES)
    else:
        results = {
            f"{study}/{name}": own for name, own in sums_of_run(run / study, ("tables", "figures")).items()
        }
    files = checksums(snakemake.input.artifacts)
    this.write(snakemake.output.manifest, {"files": files, "results": results})
