"""The MAP, and NUTS draws as ground truth."""


rule find_map:
    """The maximum a posteriori position and the curvature there, kept beside the data."""
    input:
        data=f"{RUN}/data/{{model}}.json",
    output:
        map=f"{RUN}/data/{{model}}.map.npz",
        laplace=f"{RUN}/data/{{model}}.laplace.npz",
        facts=f"{RUN}/reference/{{model}}/map.json",
    log:
        f"{LOGS}/find_map/{{model}}.log",
    # All other jobs wait for it.
    priority: 100
    conda:
        "../../envs/sgtune.yaml"
    threads: threads_of_long_jobs
    resources:
        machine=1,
    params:
        settings=settings("map"),
    script:
        "../scripts/find_map.py"


rule sample_nuts:
    """One chain of NUTS from the MAP, in checkpointed blocks: a killed job continues where it stopped."""
    input:
        **OF_MODEL,
    output:
        draws=f"{RUN}/reference/{{model}}/nuts-{{chain}}.nc",
    log:
        f"{LOGS}/sample_nuts/{{model}}-{{chain}}.log",
    conda:
        "../../envs/sgtune.yaml"
    threads: threads_of_long_jobs
    resources:
        machine=1,
    params:
        settings=settings("reference"),
        checkpoints=f"{RUN}/reference/{{model}}/checkpoints/{{chain}}",
    script:
        "../scripts/sample_nuts.py"


rule combine_nuts:
    """All chains in one file, with their diagnostics."""
    input:
        chains=chains_of,
    output:
        draws=f"{RUN}/reference/{{model}}/nuts.nc",
        facts=f"{RUN}/reference/{{model}}/nuts.json",
    log:
        f"{LOGS}/combine_nuts/{{model}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings("reference"),
    script:
        "../scripts/combine_nuts.py"
