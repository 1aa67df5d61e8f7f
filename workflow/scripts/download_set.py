"""Download a data set of a further study, or record why it is unavailable."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False):
    from pathlib import Path

    from sgtune.study.posteriors.downloads import DATA_SETS, download_or_stand_in

    folder = Path(snakemake.output.source).parent
    download_or_stand_in(
        DATA_SETS[snakemake.wildcards.download],
        folder,
        {},
        mirror=snakemake.config["data"]["mirror"],
        rule=snakemake.output.source,
    )
