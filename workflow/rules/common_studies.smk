"""Shared by the rules of further studies (`sgtune.study.report.studies`)."""

from sgtune.study.report import artifacts_of, form_of

STUDY_RESULTS = {}
"""For each further study the result files that its tables and figures are made from, by kind, and its `data` if it
has any. Its rules file (workflow/rules/{study}.smk) adds them."""


def sources_of_study(wildcards):
    """The result files that a table or figure of a further study is made from."""
    entry = artifact(getattr(wildcards, "table", None) or wildcards.figure)
    return [path for kind in entry.kinds for path in STUDY_RESULTS[entry.study][kind]]


def artifacts_of_study(wildcards):
    """The files of a study's tables and figures by which Snakemake knows them."""
    study = wildcards.study
    return [
        (
            f"{RUN}/{study}/tables/{name}.html"
            if form_of(name) == "table"
            else f"{RUN}/{study}/figures/{name}.svg"
        )
        for name in artifacts_of(study)
    ]


def sections_of_study(wildcards):
    """The settings that the study's results depend on."""
    return {name: config[name] for name in ("run", "seed", wildcards.study)}
