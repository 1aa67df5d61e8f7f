"""Write one table of a run as CSV, Markdown and HTML, and its provenance beside them."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False):
    from sgtune.study.report import make_table

    output = snakemake.output
    make_table(snakemake.wildcards.table, snakemake.input, csv=output.csv, md=output.md, html=output.html)
