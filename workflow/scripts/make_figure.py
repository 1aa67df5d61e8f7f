"""Draw one figure of a run as SVG and PDF, and as a page with its caption."""

from sgtune.study.pipeline.job import job

with job(snakemake):
    from sgtune.study.studies import make_figure

    output, caption = snakemake.output, snakemake.params.caption
    make_figure(
        snakemake.wildcards.figure, snakemake.input, caption, svg=output.svg, pdf=output.pdf, html=output.html
    )
