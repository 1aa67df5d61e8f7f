"""The study of AdamMCMC (Bieringer et al. 2023). `snakemake --cores all adam_mcmc` makes all of it."""

from sgtune.study.adam_mcmc.artifacts import settings_of as adam_mcmc_settings

ADAM_MCMC = f"{RUN}/adam_mcmc"
ADAM_MCMC_CONFIG = config["adam_mcmc"]
ON_LAPLACE = {name: path.format(model="logistic") for name, path in OF_MODEL.items()}
ON_LOGISTIC = {name: ON_LAPLACE[name] for name in ("data", "map")}


wildcard_constraints:
    kernel="[a-z-]+",


rule calibrate_adam_mcmc:
    """Seconds per step of every shape of the study. Timed."""
    input:
        **ON_LOGISTIC,
    output:
        cost=f"{ADAM_MCMC}/costs/logistic.json",
    log:
        f"{LOGS}/adam_mcmc/calibrate_adam_mcmc.log",
    # Before all jobs that can run in parallel: a timed job between those would leave a core idle each time.
    priority: 50
    conda:
        "../../envs/sgtune.yaml"
    threads: ALL_CORES
    resources:
        machine=WHOLE_MACHINE,
    params:
        settings=adam_mcmc_settings(config, "costs"),
    script:
        "../scripts/calibrate_adam_mcmc.py"


rule measure_acceptance_gaussian:
    """Acceptance and E x^2 against s on N(0, I), with and without directional noise."""
    output:
        acceptance=f"{ADAM_MCMC}/acceptance/gaussian-{{dimension}}.json",
    log:
        f"{LOGS}/adam_mcmc/measure_acceptance_gaussian/{{dimension}}.log",
    # Before the shorter experiments: a long job at the end would keep all timed jobs waiting.
    priority: 10
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=adam_mcmc_settings(config, "gaussians"),
        parts=f"{RUN}/unfinished/adam_mcmc/acceptance/gaussian-{{dimension}}",
    script:
        "../scripts/measure_acceptance_gaussian.py"


rule measure_acceptance_posterior:
    """The same on the posterior of the logistic regression."""
    input:
        **ON_LAPLACE,
    output:
        acceptance=f"{ADAM_MCMC}/acceptance/logistic.json",
    log:
        f"{LOGS}/adam_mcmc/measure_acceptance_posterior.log",
    priority: 10
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=adam_mcmc_settings(config, "posterior"),
        parts=f"{RUN}/unfinished/adam_mcmc/acceptance/logistic",
    script:
        "../scripts/measure_acceptance_posterior.py"


rule measure_adam_bias:
    """The bias of the approximations on N(0, I) against gamma / s."""
    output:
        bias=f"{ADAM_MCMC}/bias.json",
    log:
        f"{LOGS}/adam_mcmc/measure_adam_bias.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=adam_mcmc_settings(config, "bias"),
        parts=f"{RUN}/unfinished/adam_mcmc/bias",
    script:
        "../scripts/measure_adam_bias.py"


rule measure_distances:
    """Total variation to the target against the number of steps."""
    output:
        distances=f"{ADAM_MCMC}/distances.json",
    log:
        f"{LOGS}/adam_mcmc/measure_distances.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=adam_mcmc_settings(config, "distances"),
    script:
        "../scripts/measure_distances.py"


rule race_adam_mcmc:
    """A sampler with a Metropolis test on the logistic regression: races by several judges, and their regret."""
    input:
        **ON_LAPLACE,
        reference=references_of_logistic,
        cost=rules.calibrate_adam_mcmc.output.cost,
    output:
        races=f"{ADAM_MCMC}/races/{{kernel}}.json",
    log:
        f"{LOGS}/adam_mcmc/race_adam_mcmc/{{kernel}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings_of_race,
        cost_settings=rules.calibrate_adam_mcmc.params.settings,
        reference_settings=settings("reference", "logistic"),
        parts=f"{RUN}/unfinished/adam_mcmc/races/{{kernel}}",
    script:
        "../scripts/race_adam_mcmc.py"


rule evaluate_adam_mcmc:
    """One sampler, tuned by the default tuner, for the number of steps that the measured costs buy."""
    input:
        **ON_LAPLACE,
        reference=references_of_logistic,
        cost=rules.calibrate_adam_mcmc.output.cost,
    output:
        evaluation=f"{ADAM_MCMC}/evaluations/logistic/{{kernel}}.json",
    log:
        f"{LOGS}/adam_mcmc/evaluate_adam_mcmc/{{kernel}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings_of_evaluation,
        cost_settings=rules.calibrate_adam_mcmc.params.settings,
        reference_settings=settings("reference", "logistic"),
        parts=f"{RUN}/unfinished/adam_mcmc/evaluations/{{kernel}}",
    script:
        "../scripts/evaluate_adam_mcmc.py"


STUDY_RESULTS["adam_mcmc"] = {
    "acceptance": expand(
        rules.measure_acceptance_gaussian.output.acceptance,
        dimension=ADAM_MCMC_CONFIG["acceptance"]["dimensions"],
    )
    + [rules.measure_acceptance_posterior.output.acceptance] * ("logistic" in MODELS),
    "bias": [rules.measure_adam_bias.output.bias],
    "distances": [rules.measure_distances.output.distances],
    "races": expand(
        rules.race_adam_mcmc.output.races,
        kernel=ADAM_MCMC_CONFIG["race"]["samplers"] * ("logistic" in MODELS),
    ),
    "evaluations": expand(
        rules.evaluate_adam_mcmc.output.evaluation,
        kernel=ADAM_MCMC_CONFIG["evaluation"]["samplers"] * ("logistic" in MODELS),
    ),
    "data": [f"{RUN}/data/logistic.json"] * ("logistic" in MODELS),
}
