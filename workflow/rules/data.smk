"""Data sets: downloads and preparation."""

from sgtune.study.posteriors.data_sets import DATA_SETS

DOWNLOADS = "results/downloads"
"""Shared by all runs: a file is the same from every source."""

OOD = config["data"]["ood"]

SIMULATED = {model: config["data"][model]["simulated"] is not None for model in ("pmf", "bnn")}
"""Simulated data need no downloads."""

FIRST = 200
"""Priority of the short jobs before `find_map`: all other jobs of a model wait for its mode."""


# Nodes of a cluster often have no internet access.
localrules:
    download_movielens,
    download_mnist,
    download_ood,


rule simulate_logistic:
    """The paper's own simulated data set (App. B.1)."""
    output:
        facts=f"{RUN}/data/logistic.json",
    log:
        f"{LOGS}/simulate_logistic.log",
    priority: FIRST
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings("data", "logistic"),
    script:
        "../scripts/simulate_logistic.py"


rule prepare_own:
    """The facts of a model of one's own, by which jobs find its file. It and the files that it declares are inputs, so
    that a change of them reruns all of its results, and nothing else."""
    input:
        list(config["data"].get("own", {"files": []})["files"]),
    output:
        facts=f"{RUN}/data/own.json",
    log:
        f"{LOGS}/prepare_own.log",
    priority: FIRST
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings("data", "own"),
    script:
        "../scripts/prepare_own.py"


rule download_movielens:
    """MovieLens 100K: for research, not to be redistributed (README)."""
    output:
        [
            ensure(f"{DOWNLOADS}/movielens-100k/{name}", sha256=checksum)
            for name, checksum in DATA_SETS["movielens-100k"].sha256.items()
        ],
        source=f"{DOWNLOADS}/movielens-100k/source.json",
    log:
        f"{LOGS}/download_movielens.log",
    priority: FIRST
    retries: 2
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        data_set="movielens-100k",
    script:
        "../scripts/download_data.py"


rule download_mnist:
    """MNIST's four files."""
    output:
        [
            ensure(f"{DOWNLOADS}/mnist/{name}", sha256=checksum)
            for name, checksum in DATA_SETS["mnist"].sha256.items()
        ],
        source=f"{DOWNLOADS}/mnist/source.json",
    log:
        f"{LOGS}/download_mnist.log",
    priority: FIRST
    retries: 2
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        data_set="mnist",
    script:
        "../scripts/download_data.py"


rule download_ood:
    """Images without digits; if no source has them, source.json says why, and the run continues without them."""
    output:
        source=f"{DOWNLOADS}/{OOD}/source.json",
    log:
        f"{LOGS}/download_ood.log",
    retries: 2
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        data_set=OOD,
        optional=True,
    script:
        "../scripts/download_data.py"


rule prepare_movielens:
    """Ratings of the split u1."""
    input:
        [] if SIMULATED["pmf"] else f"{DOWNLOADS}/movielens-100k/u.data",
    output:
        facts=f"{RUN}/data/pmf.json",
    log:
        f"{LOGS}/prepare_movielens.log",
    priority: FIRST
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings("data", "pmf"),
    script:
        "../scripts/prepare_movielens.py"


rule prepare_mnist:
    """MNIST."""
    input:
        [] if SIMULATED["bnn"] else [f"{DOWNLOADS}/mnist/{name}" for name in DATA_SETS["mnist"].sha256],
    output:
        facts=f"{RUN}/data/bnn.json",
    log:
        f"{LOGS}/prepare_mnist.log",
    priority: FIRST
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings("data", "bnn"),
    script:
        "../scripts/prepare_mnist.py"


rule prepare_ood:
    """The images without digits, separate from MNIST, because only evaluations depend on them."""
    input:
        [] if SIMULATED["bnn"] else rules.download_ood.output.source,
    output:
        facts=f"{RUN}/data/bnn.ood.json",
    log:
        f"{LOGS}/prepare_ood.log",
    conda:
        "../../envs/sgtune.yaml"
    resources:
        machine=1,
    params:
        settings=settings("ood", "bnn"),
    script:
        "../scripts/prepare_ood.py"
