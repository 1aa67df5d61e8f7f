"""The tuners on Gaussians of growing dimension, where theory gives the expected error of every arm."""


rule gaussian_ladder:
    """The choices of each tuner and of an oracle on Gaussians of one dimension, and their expected errors."""
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
