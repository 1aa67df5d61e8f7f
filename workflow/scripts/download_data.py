"""Download a data set."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False):
    from pathlib import Path

    from sgtune.study.posteriors.downloads import DATA_SETS, download

    folder = Path(snakemake.output.source).parent
    # Not in params: another mirror has the same files, and nothing need be made again.
    download(DATA_SETS[snakemake.params.data_set], folder, mirror=snakemake.config["data"]["mirror"])
