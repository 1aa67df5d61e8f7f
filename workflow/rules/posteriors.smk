"""Tuners on posteriors that users bring. `snakemake --cores all posteriors` makes all of it."""

from sgtune.study.user_posteriors.artifacts import settings_of as posteriors_settings

POSTERIORS = f"{RUN}/posteriors"
POSTERIORS_CONFIG = config["posteriors"]


wildcard_constraints:
    case="[a-z_]+",


rule sample_posterior:
    """Chains of NUTS on one posterior, and their moments."""
    output:
        moments=f"{POSTERIORS}/moments/{{case}}.npz",
        facts=f"{POSTERIORS}/references/{{case}}.json",
    log:
        f"{LOGS}/posteriors/sample_posterior/{{case}}.log",
    priority: 20
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=posteriors_settings(config, "references"),
        checkpoints=f"{RUN}/unfinished/posteriors/nuts/{{case}}",
    script:
        "../scripts/sample_posterior.py"


rule race_posterior:
    """The choices of all tuners for one sampler, each run once, and the best arm that there is."""
    input:
        moments=rules.sample_posterior.output.moments,
    output:
        races=f"{POSTERIORS}/races/{{case}}-{{kernel}}.json",
    log:
        f"{LOGS}/posteriors/race_posterior/{{case}}-{{kernel}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=posteriors_settings(config, "races"),
        parts=f"{RUN}/unfinished/posteriors/races/{{case}}-{{kernel}}",
    script:
        "../scripts/race_posterior.py"


rule compare_preconditioned:
    """The samplers of the main study with and without a preconditioner, at equal seconds. Timed."""
    input:
        **OF_MODEL,
        reference=reference_of,
    output:
        preconditioned=f"{POSTERIORS}/preconditioned/{{model}}.json",
    log:
        f"{LOGS}/posteriors/compare_preconditioned/{{model}}.log",
    priority: 50
    conda:
        "../../envs/sgtune.yaml"
    threads: ALL_CORES
    resources:
        machine=WHOLE_MACHINE,
    params:
        settings=settings_of_preconditioned,
        reference_settings=settings("reference"),
        parts=f"{RUN}/unfinished/posteriors/preconditioned/{{model}}",
    script:
        "../scripts/compare_preconditioned.py"


STUDY_RESULTS["posteriors"] = {
    "references": expand(rules.sample_posterior.output.facts, case=POSTERIORS_CONFIG["cases"]),
    "races": expand(
        rules.race_posterior.output.races,
        case=POSTERIORS_CONFIG["cases"],
        kernel=POSTERIORS_CONFIG["samplers"],
    ),
    "preconditioned": expand(
        rules.compare_preconditioned.output.preconditioned,
        model=[model for model in POSTERIORS_CONFIG["models"] if model in MODELS],
    ),
    "reference": [
        path for model in POSTERIORS_CONFIG["models"] for path in RESULTS["reference"].get(model, [])
    ],
}
