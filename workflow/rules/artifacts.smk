"""Tables and figures."""

from sgtune.study.report import artifacts_of_run, caption_of, category_of, form_of, labels_of


rule record_settings:
    """The whole configuration of the run, defaults filled in."""
    output:
        settings=f"{RUN}/settings.json",
    log:
        f"{LOGS}/record_settings.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        config=main_sections(config),
    script:
        "../scripts/record_settings.py"


PATTERNS = {
    "cost": rules.calibrate_cost.output.cost,
    "tuning": rules.tune_sampler.output.tuning,
    "evaluation": rules.evaluate_sampler.output.evaluation,
    "screen": rules.screen_grid.output.screen,
    "regret": rules.rerun_finalists.output.regret,
    "clocks": rules.compare_clocks.output.clocks,
    "estimates": rules.estimate_discrepancies.output.estimates,
    "widths": rules.measure_widths.output.widths,
}

RESULTS = {
    kind: {
        model: list(
            dict.fromkeys(
                path
                for name, sampler, _ in STUDIED
                if name == model
                for path in collect(pattern, model=model, sampler=sampler)
            )
        )
        for model in MODELS
        if (kind != "widths" or has_reference(model))
        and (kind not in ("screen", "regret") or has_regret(config, model))
    }
    for kind, pattern in PATTERNS.items()
}
RESULTS["horizons"] = {
    model: collect(rules.compare_horizons.output.horizons, model=model)
    for model in MODELS
    if has_horizons(config, model)
}
RESULTS["reference"] = {
    model: collect(rules.find_map.output.facts, model=model)
    + (collect(rules.combine_nuts.output.facts, model=model) if has_reference(model) else [])
    for model in MODELS
}
RESULTS["data"] = {
    model: [f"{RUN}/data/{model}.json"]
    + ([f"{RUN}/data/{model}.ood.json"] if ENTRIES[model].out_of_distribution else [])
    for model in MODELS
}
RESULTS["ladder"] = {
    "": collect(rules.gaussian_ladder.output.ladder, dimension=config["ladder"]["dimensions"])
}
RESULTS["sensitivity"] = {"": rules.measure_sensitivity.output}
RESULTS["settings"] = {"": rules.record_settings.output}
RESULTS["published"] = {"": [workflow.source_path("../resources/published.csv")]}

ARTIFACTS = [
    f"{RUN}/tables/{name}.html" if form_of(name) == "table" else f"{RUN}/figures/{name}.svg"
    for name in artifacts_of_run(config)
]


rule make_table:
    """One table as CSV, Markdown and HTML, with its provenance beside it."""
    input:
        sources_of,
    output:
        csv=f"{RUN}/tables/{{table}}.csv",
        md=f"{RUN}/tables/{{table}}.md",
        html=report(
            f"{RUN}/tables/{{table}}.html",
            caption="../report/artifact.rst",
            category=category_of,
            subcategory="Tables",
            labels=labels_of,
        ),
        facts=f"{RUN}/tables/{{table}}.json",
    log:
        f"{LOGS}/make_table/{{table}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        caption=caption_of,
    script:
        "../scripts/make_table.py"


rule make_figure:
    """One figure as SVG and PDF, with its provenance inside."""
    input:
        sources_of,
    output:
        svg=report(
            f"{RUN}/figures/{{figure}}.svg",
            caption="../report/artifact.rst",
            category=category_of,
            subcategory="Figures",
            labels=labels_of,
        ),
        pdf=f"{RUN}/figures/{{figure}}.pdf",
    log:
        f"{LOGS}/make_figure/{{figure}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        caption=caption_of,
    script:
        "../scripts/make_figure.py"


rule describe_run:
    """A list of all files that a run made, with checksums, which `publish` uses."""
    input:
        ARTIFACTS,
    output:
        manifest=f"{RUN}/manifest.json",
    log:
        f"{LOGS}/describe_run.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    script:
        "../scripts/describe_run.py"


rule publish:
    """Copy the finished run's tables, figures and manifest to a tracked folder, results/published/tuning by default."""
    input:
        rules.describe_run.output.manifest,
    log:
        f"{LOGS}/publish.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        study=config["published_as"],
    script:
        "../scripts/publish.py"
