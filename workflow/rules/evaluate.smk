"""Evaluation runs of the tuned samplers, regret, and the studies of the discrepancies themselves."""


rule evaluate_sampler:
    """Runs of the tuners' choices for a sampler, each distinct arm and replicate once: for the steps that the run's
    cost table buys, or by the wall clock, alone on the machine."""
    input:
        **OF_MODEL,
        ood=ood_of,
        reference=reference_of,
        cost=cost_of_evaluation,
        tuning=rules.tune_sampler.output.tuning,
    output:
        evaluation=f"{RUN}/evaluation/{{model}}/{{sampler}}.json",
    log:
        f"{LOGS}/evaluate_sampler/{{model}}-{{sampler}}.log",
    conda:
        "../../envs/sgtune.yaml"
    threads: threads_of_evaluation
    resources:
        machine=machine_of_evaluation,
    params:
        settings=settings("evaluation"),
        cost_settings=settings("cost"),
        tuning_settings=settings_of_tuning,
        reference_settings=settings("reference"),
        parts=f"{RUN}/unfinished/evaluation/{{model}}/{{sampler}}",
    script:
        "../scripts/evaluate_sampler.py"


rule check_sampler:
    """Chains of a tuned sampler on a model of one's own, checked parameter by parameter."""
    input:
        **OF_MODEL,
        draws=draws_of,
        cost=cost_of_evaluation,
        tuning=rules.tune_sampler.output.tuning,
    output:
        checks=f"{RUN}/checks/{{model}}/{{sampler}}.json",
    log:
        f"{LOGS}/check_sampler/{{model}}-{{sampler}}.log",
    conda:
        "../../envs/sgtune.yaml"
    threads: threads_of_evaluation
    resources:
        machine=machine_of_evaluation,
    params:
        settings=settings("evaluation"),
        cost_settings=settings("cost"),
        tuning_settings=settings_of_tuning,
    script:
        "../scripts/check_sampler.py"


rule compare_clocks:
    """The runs of one tuner of one sampler repeated with the other clock, to compare results. Timed."""
    input:
        **OF_MODEL,
        ood=ood_of,
        reference=reference_of,
        cost=cost_of,
        evaluation=expand(
            rules.evaluate_sampler.output.evaluation, sampler=config["samplers"][0], allow_missing=True
        ),
    output:
        clocks=f"{RUN}/clocks/{{model}}.json",
    log:
        f"{LOGS}/compare_clocks/{{model}}.log",
    conda:
        "../../envs/sgtune.yaml"
    threads: ALL_CORES
    resources:
        machine=WHOLE_MACHINE,
    params:
        settings=settings("evaluation"),
        cost_settings=settings("cost"),
        reference_settings=settings("reference"),
    script:
        "../scripts/compare_clocks.py"


rule screen_grid:
    """Every arm of a sampler's grid in a few replicates of the same seconds, converted to steps; and oracles'
    choices."""
    input:
        **OF_MODEL,
        reference=reference_of,
        cost=cost_of,
    output:
        screen=f"{RUN}/screen/{{model}}/{{sampler}}.json",
    log:
        f"{LOGS}/screen_grid/{{model}}-{{sampler}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings("screen"),
        cost_settings=settings("cost"),
        reference_settings=settings("reference"),
        parts=f"{RUN}/unfinished/screen/{{model}}/{{sampler}}",
    script:
        "../scripts/screen_grid.py"


rule rerun_finalists:
    """The best arms of the screen, and those that tuners and oracles chose, in fresh replicates, from which regret is
    computed."""
    input:
        **OF_MODEL,
        reference=reference_of,
        cost=cost_of,
        screen=rules.screen_grid.output.screen,
        tuning=rules.tune_sampler.output.tuning,
    output:
        regret=f"{RUN}/regret/{{model}}/{{sampler}}.json",
    log:
        f"{LOGS}/rerun_finalists/{{model}}-{{sampler}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings("regret"),
        cost_settings=settings("cost"),
        screen_settings=settings("screen"),
        tuning_settings=settings_of_tuning,
        reference_settings=settings("reference"),
        parts=f"{RUN}/unfinished/regret/{{model}}/{{sampler}}",
    script:
        "../scripts/rerun_finalists.py"


rule compare_horizons:
    """Choices of tuners that look ahead for runs of several lengths, and their errors in the longest run."""
    input:
        **OF_MODEL,
        reference=rules.combine_nuts.output.facts,
        cost=cost_of,
    output:
        horizons=f"{RUN}/horizons/{{model}}.json",
    log:
        f"{LOGS}/compare_horizons/{{model}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings("horizons"),
        cost_settings=settings("cost"),
        reference_settings=settings("reference"),
        parts=f"{RUN}/unfinished/horizons/{{model}}",
    script:
        "../scripts/compare_horizons.py"


rule estimate_discrepancies:
    """The KSD with full-batch and stochastic gradients, at all and at thinned points (Figs. 1, 2)."""
    input:
        **OF_MODEL,
        cost=cost_of,
    output:
        estimates=f"{RUN}/estimates/{{model}}.json",
    log:
        f"{LOGS}/estimate_discrepancies/{{model}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings("estimates"),
        cost_settings=settings("cost"),
    script:
        "../scripts/estimate_discrepancies.py"


rule measure_widths:
    """Every discrepancy of exact draws, shrunk or stretched about their mean."""
    input:
        **OF_MODEL,
        draws=f"{RUN}/reference/{{model}}/nuts.nc",
    output:
        widths=f"{RUN}/widths/{{model}}.json",
    log:
        f"{LOGS}/measure_widths/{{model}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings("widths"),
    script:
        "../scripts/measure_widths.py"


rule measure_sensitivity:
    """Which errors each discrepancy sees: exact draws of known targets with one error at a time; no model, no chain."""
    output:
        sensitivity=f"{RUN}/sensitivity.json",
    log:
        f"{LOGS}/measure_sensitivity.log",
    # It takes minutes and needs no other job. Last, it would hold up the timed jobs, with a core idle beside it.
    priority: 20
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings={name: config[name] for name in ("seed", "sensitivity")},
    script:
        "../scripts/measure_sensitivity.py"
