"""Draw one figure of a run as SVG and PDF."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False):
    from sgtune.study.studies import make_figure

    output = snakemake.output
    make_figure(snakemake.wildcards.figure, snakemake.input, svg=output.svg, pdf=output.pdf)
