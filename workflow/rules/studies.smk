"""What all studies have in common, from result files to the published copy.

A study's own rules file comes before this one; it makes the result files and says which there are (`STUDY_RESULTS`).
"""

CAPTIONS = {
    name: Path(workflow.source_path(f"../captions/{name}.md")).read_text(encoding="utf-8")
    for study in STUDIES
    for name in artifacts_of_run(config, study)
}


localrules:
    compare,
    forecast,
    verify,


rule record_settings:
    """The sections of the configuration that a study's results depend on, defaults filled in."""
    output:
        settings=f"{RUN}/{{study}}/settings.json",
    log:
        f"{LOGS}/{{study}}/record_settings.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        config=sections_of,
    script:
        "../scripts/record_settings.py"


rule make_table:
    """One table as CSV, Markdown and HTML, with its provenance beside it."""
    input:
        sources_of,
    output:
        csv=f"{RUN}/{{study}}/tables/{{table}}.csv",
        md=f"{RUN}/{{study}}/tables/{{table}}.md",
        html=report(
            f"{RUN}/{{study}}/tables/{{table}}.html",
            caption="../report/artifact.rst",
            category=category_of,
            subcategory=TABLES_FIRST,
            labels=labels_of,
        ),
        facts=f"{RUN}/{{study}}/tables/{{table}}.json",
    log:
        f"{LOGS}/{{study}}/make_table/{{table}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        caption=caption_of,
    script:
        "../scripts/make_table.py"


rule make_figure:
    """One figure as SVG and PDF, with its provenance inside, and a page with its caption."""
    input:
        sources_of,
    output:
        svg=f"{RUN}/{{study}}/figures/{{figure}}.svg",
        pdf=f"{RUN}/{{study}}/figures/{{figure}}.pdf",
        html=report(
            f"{RUN}/{{study}}/figures/{{figure}}.html",
            caption="../report/artifact.rst",
            category=category_of,
            subcategory="Figures",
            labels=labels_of,
        ),
    log:
        f"{LOGS}/{{study}}/make_figure/{{figure}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        caption=caption_of,
    script:
        "../scripts/make_figure.py"


rule describe_study:
    """A list of all files that a run made for a study, with checksums, which `publish` and `verify` use."""
    input:
        artifacts=artifacts_of,
        results=results_of_study,
        settings=f"{RUN}/{{study}}/settings.json",
    output:
        manifest=f"{RUN}/{{study}}/manifest.json",
    log:
        f"{LOGS}/{{study}}/describe_study.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    script:
        "../scripts/describe_study.py"


for study in STUDIES:

    rule:
        name:
            study
        input:
            files_of(config, study),
            f"{RUN}/{study}/manifest.json",
            # A result that was deleted is made again.
            results_of_study(SimpleNamespace(study=study)),
            # Of which run the results are; a forecast goes by it.
            f"{RUN}/{study}/settings.json",
        localrule: True

    for path in files_of(config, study):

        rule:
            name:
                Path(path).stem
            input:
                path,
            localrule: True

    rule:
        """Copy the finished study's tables, figures and manifest to a tracked folder of results/published."""
        name:
            "publish" if study == MAIN else f"publish_{study}"
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
            folder=config["published_as"] if study == MAIN else study,
        script:
            "../scripts/publish.py"


rule forecast:
    """Print the expected hours of the run, by rule and model."""
    log:
        f"{LOGS}/forecast.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    script:
        "../scripts/forecast.py"


rule verify:
    """Compare every file of the finished run with its manifests: what is foreign, changed or missing."""
    log:
        f"{LOGS}/verify.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    script:
        "../scripts/verify.py"


rule compare:
    """Compare the tables of the finished run with the published ones, cell by cell."""
    log:
        f"{LOGS}/compare.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        published={study: config["published_as"] if study == MAIN else study for study in STUDIES},
    script:
        "../scripts/compare.py"
