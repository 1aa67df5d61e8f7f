"""The tuners on Gaussians of growing dimension, where theory gives the expected error of every arm."""


rule measure_ladder:
    """The choices of each tuner and of an oracle on Gaussians of one dimension, and their expected errors."""
    output:
        ladder=f"{RUN}/ladder/{{dimension}}.json",
    log:
        f"{LOGS}/measure_ladder/{{dimension}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings_of_ladder,
        parts=f"{RUN}/unfinished/ladder/{{dimension}}",
    script:
        "../scripts/measure_ladder.py"
