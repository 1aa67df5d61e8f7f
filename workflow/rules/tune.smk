"""Tuning: what a step costs, and every sampler by all its tuners. Timed, so alone on the machine,
unless the run was given a cost table."""


rule calibrate_cost:
    """Seconds per step of every sampler, batch size and leapfrog number of the grids."""
    input:
        **OF_MODEL,
        table=table_of,
    output:
        cost=f"{RUN}/cost/{{model}}.json",
    log:
        f"{LOGS}/calibrate_cost/{{model}}.log",
    # Before all jobs that can run in parallel: a timed job between those would leave a core idle each time. (If the
    # run was given a cost table, no job waits for this one, and it runs when the others are done.)
    priority: 50
    conda:
        "../../envs/sgtune.yaml"
    threads: ALL_CORES
    resources:
        machine=WHOLE_MACHINE,
    params:
        settings=settings("cost"),
    script:
        "../scripts/calibrate_cost.py"


rule collect_costs:
    """The measured costs of all models in one file, which another run can use (key calibration.table)."""
    input:
        costs=expand(rules.calibrate_cost.output.cost, model=MODELS),
    output:
        table=f"{RUN}/cost/table.json",
    log:
        f"{LOGS}/collect_costs.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    script:
        "../scripts/collect_costs.py"


rule tune_sampler:
    """Step size, batch size and leapfrog number of one sampler, chosen by each of its tuners."""
    input:
        **OF_MODEL,
        cost=cost_of,
    output:
        tuning=f"{RUN}/tuning/{{model}}/{{sampler}}.json",
    log:
        f"{LOGS}/tune_sampler/{{model}}-{{sampler}}.log",
    # Before all jobs that can run in parallel: a timed job between those would leave a core idle each time.
    priority: 50
    conda:
        "../../envs/sgtune.yaml"
    threads: threads_of_tuning
    resources:
        machine=machine_of_tuning,
    params:
        settings=settings_of_tuning,
        cost_settings=settings("cost"),
        parts=f"{RUN}/unfinished/tuning/{{model}}/{{sampler}}",
    script:
        "../scripts/tune_sampler.py"
