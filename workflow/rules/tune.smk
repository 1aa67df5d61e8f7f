"""Tuning: what a step costs, and every tuner on every sampler. Timed: alone on the machine."""


rule calibrate_cost:
    """Seconds per step of every sampler, batch size and leapfrog number of the grids."""
    input:
        data=f"{RUN}/data/{{model}}.json",
        map=f"{RUN}/data/{{model}}.map.npz",
        laplace=f"{RUN}/data/{{model}}.laplace.npz",
    output:
        cost=f"{RUN}/cost/{{model}}.json",
    log:
        f"{LOGS}/calibrate_cost/{{model}}.log",
    conda:
        "../../envs/sgtune.yaml"
    threads: workflow.cores
    resources:
        machine=WHOLE_MACHINE,
    params:
        settings=settings("cost"),
    script:
        "../scripts/calibrate_cost.py"


rule tune_sampler:
    """Step size, batch size and leapfrog number, chosen by one tuner for one sampler."""
    input:
        data=f"{RUN}/data/{{model}}.json",
        map=f"{RUN}/data/{{model}}.map.npz",
        laplace=f"{RUN}/data/{{model}}.laplace.npz",
        cost=rules.calibrate_cost.output.cost,
    output:
        tuning=f"{RUN}/tuning/{{model}}/{{sampler}}/{{tuner}}.json",
    log:
        f"{LOGS}/tune_sampler/{{model}}-{{sampler}}-{{tuner}}.log",
    conda:
        "../../envs/sgtune.yaml"
    threads: workflow.cores
    resources:
        machine=WHOLE_MACHINE,
    params:
        settings=settings("tuning"),
        cost_settings=settings("cost"),
    script:
        "../scripts/tune_sampler.py"
