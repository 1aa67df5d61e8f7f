"""Write one table of a run as CSV, Markdown and HTML, and its provenance beside them."""

from sgtune.study.pipeline.job import job

with job(snakemake):
    from sgtune.study.studies import make_table

    output, caption = snakemake.output, snakemake.params.caption
    make_table(
        snakemake.wildcards.table, snakemake.input, caption, csv=output.csv, md=output.md, html=output.html
    )
