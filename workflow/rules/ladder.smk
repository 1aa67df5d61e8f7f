"""The tuners on Gaussians of growing dimension, where theory knows the expected error of every arm."""


rule gaussian_ladder:
    """What each tuner, and an oracle, chooses on Gaussians of one dimension, and the error expected of it."""
    output:
        ladder=f"{RUN}/ladder/{{dimension}}.json",
    log:
        f"{LOGS}/gaussian_ladder/{{dimension}}.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings_of_ladder,
        parts=f"{RUN}/unfinished/ladder/{{dimension}}",
    script:
        "../scripts/gaussian_ladder.py"
