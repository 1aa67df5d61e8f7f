"""Where data come from."""


rule simulate_logistic:
    """The paper's own simulated data set (App. B.1)."""
    output:
        data=f"{RUN}/data/logistic.npz",
        facts=f"{RUN}/data/logistic.json",
    log:
        f"{LOGS}/simulate_logistic.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings("data"),
    script:
        "../scripts/simulate_logistic.py"
