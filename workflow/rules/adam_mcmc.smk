"""The study of AdamMCMC (Bieringer et al. 2023). `snakemake --cores all adam_mcmc` makes all of it."""


wildcard_constraints:
    kernel="[a-z-]+",


rule calibrate_gaussians:
    """Seconds per step of AdamMCMC on N(0, I) of every dimension."""
    output:
        cost=f"{ADAM_MCMC}/costs/gaussians.json",
    log:
        f"{LOGS}/adam_mcmc/calibrate_gaussians.log",
    priority: 50
    conda:
        "../../envs/sgtune.yaml"
    threads: ALL_CORES
    resources:
        machine=WHOLE_MACHINE,
    params:
        settings={
            "costs": ADAM_MCMC_CONFIG["costs"],
            "dimensions": ADAM_MCMC_CONFIG["acceptance"]["dimensions"],
        },
    script:
        "../scripts/calibrate_gaussians.py"


rule calibrate_adam_mcmc:
    """Seconds per step of every shape of the study on one model. Timed."""
    input:
        data=f"{RUN}/data/{{model}}.json",
        map=f"{RUN}/data/{{model}}.map.npz",
    output:
        cost=f"{ADAM_MCMC}/costs/{{model}}.json",
    log:
        f"{LOGS}/adam_mcmc/calibrate_adam_mcmc/{{model}}.log",
    # Before all jobs that can run in parallel: a timed job between those would leave a core idle each time.
    priority: 50
    conda:
        "../../envs/sgtune.yaml"
    threads: ALL_CORES
    resources:
        machine=WHOLE_MACHINE,
    params:
        settings=settings_of_costs,
    script:
        "../scripts/calibrate_adam_mcmc.py"


rule measure_acceptance_gaussian:
    """Acceptance and effective sample sizes against s on N(0, I), with and without directional noise."""
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
        settings=experiment_settings(config, "gaussians"),
        parts=f"{RUN}/unfinished/adam_mcmc/acceptance/gaussian-{{dimension}}",
    script:
        "../scripts/measure_acceptance_gaussian.py"


rule measure_acceptance_posterior:
    """The same on the posterior of the logistic regression."""
    input:
        data=f"{RUN}/data/logistic.json",
        map=f"{RUN}/data/logistic.map.npz",
        laplace=f"{RUN}/data/logistic.laplace.npz",
    output:
        acceptance=f"{ADAM_MCMC}/acceptance/logistic.json",
    log:
        f"{LOGS}/adam_mcmc/measure_acceptance_posterior.log",
    # Before the shorter experiments: a long job at the end would keep all timed jobs waiting.
    priority: 10
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=posterior_settings(config),
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
        settings=experiment_settings(config, "bias"),
        parts=f"{RUN}/unfinished/adam_mcmc/bias",
    script:
        "../scripts/measure_adam_bias.py"


rule measure_plane_bias:
    """The bias of the approximation on a correlated Gaussian, a banana and a mixture against gamma / s."""
    output:
        plane_bias=f"{ADAM_MCMC}/plane_bias.json",
    log:
        f"{LOGS}/adam_mcmc/measure_plane_bias.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=experiment_settings(config, "bias"),
    script:
        "../scripts/measure_plane_bias.py"


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
        settings=experiment_settings(config, "distances"),
    script:
        "../scripts/measure_distances.py"


rule race_adam_mcmc:
    """A sampler with a Metropolis test on the logistic regression: races by several judges, and their regret."""
    input:
        data=f"{RUN}/data/logistic.json",
        map=f"{RUN}/data/logistic.map.npz",
        laplace=f"{RUN}/data/logistic.laplace.npz",
        reference=references_of_logistic,
        cost=f"{ADAM_MCMC}/costs/logistic.json",
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
        cost_settings=lambda wildcards: costs_settings(config, "logistic"),
        reference_settings=settings("reference", "logistic"),
        parts=f"{RUN}/unfinished/adam_mcmc/races/{{kernel}}",
    script:
        "../scripts/race_adam_mcmc.py"


rule evaluate_adam_mcmc:
    """One sampler, tuned by the default tuner, for the number of steps that the measured costs buy."""
    input:
        data=f"{RUN}/data/{{model}}.json",
        map=f"{RUN}/data/{{model}}.map.npz",
        laplace=f"{RUN}/data/{{model}}.laplace.npz",
        reference=reference_of,
        cost=rules.calibrate_adam_mcmc.output.cost,
    output:
        evaluation=f"{ADAM_MCMC}/evaluations/{{model}}/{{kernel}}.json",
    log:
        f"{LOGS}/adam_mcmc/evaluate_adam_mcmc/{{model}}-{{kernel}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings_of_evaluation,
        cost_settings=settings_of_costs,
        reference_settings=settings("reference"),
        parts=f"{RUN}/unfinished/adam_mcmc/evaluations/{{model}}/{{kernel}}",
    script:
        "../scripts/evaluate_adam_mcmc.py"


STUDY_RESULTS["adam_mcmc"] = {
    "costs": [rules.calibrate_gaussians.output.cost]
    + expand(rules.calibrate_adam_mcmc.output.cost, model=ADAM_MCMC_MODELS),
    "acceptance": expand(
        rules.measure_acceptance_gaussian.output.acceptance,
        dimension=ADAM_MCMC_CONFIG["acceptance"]["dimensions"],
    )
    + [rules.measure_acceptance_posterior.output.acceptance] * ("logistic" in MODELS),
    "bias": [rules.measure_adam_bias.output.bias],
    "plane_bias": [rules.measure_plane_bias.output.plane_bias],
    "distances": [rules.measure_distances.output.distances],
    "races": expand(
        rules.race_adam_mcmc.output.races,
        kernel=ADAM_MCMC_CONFIG["race"]["samplers"] * ("logistic" in MODELS),
    ),
    "evaluations": [
        path
        for model in ADAM_MCMC_MODELS
        for path in expand(
            rules.evaluate_adam_mcmc.output.evaluation,
            model=model,
            kernel=ADAM_MCMC_CONFIG["evaluation"][model]["samplers"],
        )
    ],
    "settings": [f"{ADAM_MCMC}/settings.json"],
    "data": expand(f"{RUN}/data/{{model}}.json", model=ADAM_MCMC_MODELS),
}
