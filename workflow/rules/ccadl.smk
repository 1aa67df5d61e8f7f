"""The study of CCAdL (Shang et al. 2015): its data and its chains. `snakemake --cores all ccadl` makes all of it."""

from sgtune.study.ccadl.artifacts import data_settings, reference_settings, settings_of as ccadl_settings

CCADL = f"{RUN}/ccadl"
CCADL_CONFIG = config["ccadl"]
DATA_SETTINGS = data_settings(config)
REFERENCE_SETTINGS = reference_settings(config)


localrules:
    download_set,


wildcard_constraints:
    method="[a-z]+",
    set="mnist79|connect-4|letter|acoustic",
    download="connect-4|letter|acoustic",


rule sample_normal:
    """Mean and precision of a normal by one sampler (Sect. 4.1): chains of every (h, A), all replicates."""
    output:
        normal=f"{CCADL}/normal/{{method}}.json",
    log:
        f"{LOGS}/ccadl/sample_normal/{{method}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings_of_method("normal"),
        parts=f"{RUN}/unfinished/ccadl/normal/{{method}}",
    script:
        "../scripts/sample_normal.py"


rule download_set:
    """A data set of Sect. 4.3; if no source has it, source.json says why, and the study continues without it."""
    output:
        source=f"{DOWNLOADS}/{{download}}/source.json",
    log:
        f"{LOGS}/ccadl/download_set/{{download}}.log",
    retries: 2
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        optional=True,
    script:
        "../scripts/download_data.py"


rule prepare_set:
    """A data set, split in training and test rows; for an unavailable set, the reason."""
    input:
        download_of_set,
    output:
        facts=f"{CCADL}/data/{{set}}.json",
    log:
        f"{LOGS}/ccadl/prepare_set/{{set}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=DATA_SETTINGS,
    script:
        "../scripts/prepare_set.py"


rule find_set_map:
    """The maximum a posteriori position of a set's model, kept beside the data, and its predictions."""
    input:
        data=rules.prepare_set.output.facts,
    output:
        facts=f"{CCADL}/map/{{set}}.json",
    log:
        f"{LOGS}/ccadl/find_set_map/{{set}}.log",
    # Most of the others wait for it.
    priority: 100
    conda:
        "../../envs/sgtune.yaml"
    threads: threads_of_long_jobs
    resources:
        machine=1,
    params:
        settings=DATA_SETTINGS | {"map": CCADL_CONFIG["map"]},
    script:
        "../scripts/find_set_map.py"


rule sample_set_nuts:
    """One chain of NUTS on the logistic regression of Sect. 4.2, in checkpointed blocks."""
    input:
        data=f"{CCADL}/data/mnist79.json",
        map=f"{CCADL}/map/mnist79.json",
    output:
        draws=f"{CCADL}/logistic_reference/nuts-{{chain}}.nc",
    log:
        f"{LOGS}/ccadl/sample_set_nuts/{{chain}}.log",
    conda:
        "../../envs/sgtune.yaml"
    threads: threads_of_long_jobs
    resources:
        machine=1,
    params:
        settings=REFERENCE_SETTINGS,
        data_set="mnist79",
        checkpoints=f"{RUN}/unfinished/ccadl/nuts/{{chain}}",
    script:
        "../scripts/sample_nuts.py"


rule combine_set_nuts:
    """Its chains in one file, with their diagnostics."""
    input:
        chains=chains_of_logistic,
    output:
        draws=f"{CCADL}/logistic_reference/nuts.nc",
        facts=f"{CCADL}/logistic_reference/nuts.json",
    log:
        f"{LOGS}/ccadl/combine_set_nuts.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=REFERENCE_SETTINGS,
        data_set="mnist79",
    script:
        "../scripts/combine_nuts.py"


rule sample_logistic_curves:
    """Logistic regression by one sampler (Sect. 4.2): test log-likelihood against passes, for every (h, A)."""
    input:
        data=f"{CCADL}/data/mnist79.json",
    output:
        curves=f"{CCADL}/logistic_curves/{{method}}.json",
    log:
        f"{LOGS}/ccadl/sample_logistic_curves/{{method}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings_of_method("logistic_curves"),
        parts=f"{RUN}/unfinished/ccadl/logistic_curves/{{method}}",
    script:
        "../scripts/sample_logistic_curves.py"


rule sample_logistic_draws:
    """Logistic regression by one sampler (Sect. 4.2): long chains of every h at one A, against NUTS."""
    input:
        data=f"{CCADL}/data/mnist79.json",
        map=f"{CCADL}/map/mnist79.json",
        reference=rules.combine_set_nuts.output.facts,
    output:
        draws=f"{CCADL}/logistic_draws/{{method}}.json",
    log:
        f"{LOGS}/ccadl/sample_logistic_draws/{{method}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings_of_method("logistic_draws"),
        reference_settings=REFERENCE_SETTINGS,
        parts=f"{RUN}/unfinished/ccadl/logistic_draws/{{method}}",
    script:
        "../scripts/sample_logistic_draws.py"


rule sample_drbm:
    """The discriminative RBM of one data set by one sampler (Sect. 4.3): test error against passes, for every (h, A)."""
    input:
        data=rules.prepare_set.output.facts,
    output:
        errors=f"{CCADL}/drbm/{{set}}/{{method}}.json",
    log:
        f"{LOGS}/ccadl/sample_drbm/{{set}}-{{method}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings_of_method("drbm"),
        parts=f"{RUN}/unfinished/ccadl/drbm/{{set}}/{{method}}",
    script:
        "../scripts/sample_drbm.py"


STUDY_RESULTS["ccadl"] = {
    "normal": expand(rules.sample_normal.output.normal, method=CCADL_CONFIG["normal"]["samplers"]),
    "logistic_curves": expand(
        rules.sample_logistic_curves.output.curves, method=CCADL_CONFIG["logistic"]["samplers"]
    ),
    "logistic_draws": expand(
        rules.sample_logistic_draws.output.draws, method=CCADL_CONFIG["logistic"]["samplers"]
    ),
    "logistic_reference": [rules.combine_set_nuts.output.facts],
    "drbm": expand(
        rules.sample_drbm.output.errors,
        set=CCADL_CONFIG["drbm"]["sets"],
        method=CCADL_CONFIG["drbm"]["samplers"],
    ),
    "data": expand(rules.prepare_set.output.facts, set=["mnist79", *CCADL_CONFIG["drbm"]["sets"]]),
    "map": expand(rules.find_set_map.output.facts, set=CCADL_CONFIG["drbm"]["sets"]),
    "published": [workflow.source_path("../resources/ccadl/published.csv")],
}
