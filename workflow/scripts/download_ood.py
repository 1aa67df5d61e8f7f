"""Download the out-of-distribution images, or record why they are unavailable."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False):
    from pathlib import Path

    from sgtune.study.posteriors.downloads import DATA_SETS, download_or_stand_in
    from sgtune.study.posteriors.ood_images import NO_IMAGES

    images = Path(snakemake.output.images)
    download_or_stand_in(
        DATA_SETS[snakemake.params.data_set],
        images.parent,
        {images.name: NO_IMAGES},
        mirror=snakemake.config["data"]["mirror"],
    )
