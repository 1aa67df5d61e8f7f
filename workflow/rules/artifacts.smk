"""Tables and figures: what a person sees."""

PER_SAMPLER_AND_TUNER = dict(model=MODELS, sampler=SAMPLERS, tuner=TUNERS)

RESULTS = {
    "tuning": collect(rules.tune_sampler.output.tuning, **PER_SAMPLER_AND_TUNER),
    "evaluation": collect(rules.evaluate_sampler.output.evaluation, **PER_SAMPLER_AND_TUNER),
    "sweep": collect(rules.sweep_grid.output.sweep, model=MODELS, sampler=SAMPLERS),
    "estimates": collect(rules.estimate_discrepancies.output.estimates, model=MODELS),
    "widths": collect(rules.measure_widths.output.widths, model=MODELS),
    "published": [workflow.source_path("../resources/published.csv")],
}

FIGURES = ["figure1", "figure2", "figure3", "figure3_scaled", "widths", "regret_dots"]
TABLES = [name for name in REQUIRES if name not in FIGURES]
# Tables without a row, when none of their tuners is studied.
if not {"mamba-ksd", "mamba-fssd", "grid", "heuristic", "mamba-ksd-scaled"} & set(TUNERS):
    TABLES.remove("table1")
if set(TUNERS) == {"mamba-ksd-scaled"}:
    TABLES.remove("published_comparison")

ARTIFACTS = collect(f"{RUN}/tables/{{table}}.html", table=TABLES) + collect(
    f"{RUN}/figures/{{figure}}.svg", figure=FIGURES
)


rule make_table:
    """One table as CSV, Markdown and HTML, with its provenance beside it."""
    input:
        sources_of,
    output:
        csv=f"{RUN}/tables/{{table}}.csv",
        md=f"{RUN}/tables/{{table}}.md",
        html=report(
            f"{RUN}/tables/{{table}}.html",
            caption="../report/table.rst",
            category="Logistic regression",
            subcategory="Tables",
            labels={"artifact": "{table}"},
        ),
        facts=f"{RUN}/tables/{{table}}.json",
    log:
        f"{LOGS}/make_table/{{table}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    script:
        "../scripts/make_table.py"


rule make_figure:
    """One figure as SVG and PDF, with its provenance inside."""
    input:
        sources_of,
    output:
        svg=report(
            f"{RUN}/figures/{{figure}}.svg",
            caption="../report/figure.rst",
            category="Logistic regression",
            subcategory="Figures",
            labels={"artifact": "{figure}"},
        ),
        pdf=f"{RUN}/figures/{{figure}}.pdf",
    log:
        f"{LOGS}/make_figure/{{figure}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    script:
        "../scripts/make_figure.py"


rule describe_run:
    """Everything that a run made, with checksums: what `publish` copies by."""
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
    """Copy the finished run's tables, figures and manifest to results/published, which is tracked."""
    input:
        rules.describe_run.output.manifest,
    log:
        f"{LOGS}/publish.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    script:
        "../scripts/publish.py"
