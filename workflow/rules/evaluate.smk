"""How good what was tuned is: evaluation runs, the regret sweep, and the discrepancies themselves."""


rule evaluate_sampler:
    """What the tuners chose for a sampler, each distinct arm for the whole budget: by the wall clock, alone on the machine,
    or for the steps that a given cost table buys."""
    input:
        data=f"{RUN}/data/{{model}}.json",
        map=f"{RUN}/data/{{model}}.map.npz",
        laplace=f"{RUN}/data/{{model}}.laplace.npz",
        ood=ood_of,
        reference=reference_of,
        table=table_of,
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
        tuning_settings=settings_of_tuning,
        reference_settings=settings("reference"),
        parts=f"{RUN}/unfinished/evaluation/{{model}}/{{sampler}}",
    script:
        "../scripts/evaluate_sampler.py"


rule sweep_grid:
    """How good every arm of a sampler's grid is after the same seconds, turned into steps: what a tuner could have had."""
    input:
        data=f"{RUN}/data/{{model}}.json",
        map=f"{RUN}/data/{{model}}.map.npz",
        laplace=f"{RUN}/data/{{model}}.laplace.npz",
        reference=reference_of,
        cost=cost_of,
    output:
        sweep=f"{RUN}/sweep/{{model}}/{{sampler}}.json",
    log:
        f"{LOGS}/sweep_grid/{{model}}-{{sampler}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings("sweep"),
        cost_settings=settings("cost"),
        reference_settings=settings("reference"),
    script:
        "../scripts/sweep_grid.py"


rule estimate_discrepancies:
    """KSD and FSSD with full-batch and stochastic gradients, at all and at thinned points (Figs. 1, 2)."""
    input:
        data=f"{RUN}/data/{{model}}.json",
        map=f"{RUN}/data/{{model}}.map.npz",
        laplace=f"{RUN}/data/{{model}}.laplace.npz",
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
    """What each discrepancy says of exact draws drawn in or out about their mean."""
    input:
        data=f"{RUN}/data/{{model}}.json",
        map=f"{RUN}/data/{{model}}.map.npz",
        laplace=f"{RUN}/data/{{model}}.laplace.npz",
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
