"""Further studies (`sgtune.study.report.studies`): what they have in common, from result files to the published copy.

A study's own rules file comes before this one; it makes the result files and says which there are (`STUDY_RESULTS`).
"""


rule record_study_settings:
    """A further study's section of the configuration, defaults filled in."""
    output:
        settings=f"{RUN}/{{study}}/settings.json",
    log:
        f"{LOGS}/{{study}}/record_study_settings.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        config=sections_of_study,
    script:
        "../scripts/record_settings.py"


rule make_study_table:
    """One table of a further study as CSV, Markdown and HTML, with its provenance beside it."""
    input:
        sources_of_study,
    output:
        csv=f"{RUN}/{{study}}/tables/{{table}}.csv",
        md=f"{RUN}/{{study}}/tables/{{table}}.md",
        html=report(
            f"{RUN}/{{study}}/tables/{{table}}.html",
            caption="../report/artifact.rst",
            category=category_of,
            subcategory="Tables",
            labels=labels_of,
        ),
        facts=f"{RUN}/{{study}}/tables/{{table}}.json",
    log:
        f"{LOGS}/{{study}}/make_study_table/{{table}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        caption=caption_of,
    script:
        "../scripts/make_table.py"


rule make_study_figure:
    """One figure of a further study as SVG and PDF, with its provenance inside."""
    input:
        sources_of_study,
    output:
        svg=report(
            f"{RUN}/{{study}}/figures/{{figure}}.svg",
            caption="../report/artifact.rst",
            category=category_of,
            subcategory="Figures",
            labels=labels_of,
        ),
        pdf=f"{RUN}/{{study}}/figures/{{figure}}.pdf",
    log:
        f"{LOGS}/{{study}}/make_study_figure/{{figure}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        caption=caption_of,
    script:
        "../scripts/make_figure.py"


rule describe_study:
    """A list of all files that a run made for a further study, with checksums, which publishing uses."""
    input:
        artifacts_of_study,
    output:
        manifest=f"{RUN}/{{study}}/manifest.json",
    log:
        f"{LOGS}/{{study}}/describe_study.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    script:
        "../scripts/describe_run.py"


for study in STUDIES:

    rule:
        name:
            study
        input:
            artifacts_of_study(SimpleNamespace(study=study)),
            f"{RUN}/{study}/manifest.json",
        localrule: True

    rule:
        """Copy the finished study's tables, figures and manifest to results/published/{study}, which is tracked."""
        name:
            f"publish_{study}"
        input:
            f"{RUN}/{study}/manifest.json",
        log:
            f"{LOGS}/{study}/publish.log",
        conda:
            "../../envs/sgtune.yaml"
        resources:
            machine=1,
        params:
            study=study,
        script:
            "../scripts/publish.py"
