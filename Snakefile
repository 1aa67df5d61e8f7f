"""The workflow is workflow/Snakefile; here it is found by a plain `snakemake --cores all`."""


include: "workflow/Snakefile"


# The default target of an included file does not count.
workflow.default_target = "all"
