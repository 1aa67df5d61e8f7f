"""Download a data set; of an optional one that no source has, record why it is unavailable."""

from sgtune.study.pipeline.job import job

with job(snakemake):
    from pathlib import Path

    from sgtune.study.posteriors.data_sets import DATA_SETS, download

    name = snakemake.params.get("data_set") or snakemake.wildcards.download
    # Not in params: another mirror has the same files, and nothing need be made again.
    mirror = snakemake.config["data"]["mirror"]
    optional = snakemake.params.get("optional", False)
    download(DATA_SETS[name], Path(snakemake.output.source).parent, mirror=mirror, optional=optional)
