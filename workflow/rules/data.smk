"""Data sets: downloads and preparation."""

from sgtune.study.posteriors import logistic_data as logistic
from sgtune.study.posteriors import mnist
from sgtune.study.posteriors import movielens
from sgtune.study.posteriors import ood_images
from sgtune.study.posteriors.downloads import MNIST, MOVIELENS

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
        data=[f"{RUN}/data/logistic/{name}.npy" for name in logistic.NAMES],
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


rule download_movielens:
    """MovieLens 100K: for research, not to be redistributed (README)."""
    output:
        [
            ensure(f"{DOWNLOADS}/movielens-100k/{name}", sha256=checksum)
            for name, checksum in MOVIELENS.sha256.items()
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
        [ensure(f"{DOWNLOADS}/mnist/{name}", sha256=checksum) for name, checksum in MNIST.sha256.items()],
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
    """Images without digits; if no source has them, a file without images, and source.json says why."""
    output:
        images=ensure(f"{DOWNLOADS}/{OOD}/t10k-images-idx3-ubyte", non_empty=True),
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
    script:
        "../scripts/download_ood.py"


rule prepare_movielens:
    """Ratings of the split u1."""
    input:
        [] if SIMULATED["pmf"] else f"{DOWNLOADS}/movielens-100k/u.data",
    output:
        data=[f"{RUN}/data/pmf/{name}.npy" for name in movielens.NAMES],
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
        [] if SIMULATED["bnn"] else [f"{DOWNLOADS}/mnist/{name}" for name in MNIST.sha256],
    output:
        data=[f"{RUN}/data/bnn/{name}.npy" for name in mnist.NAMES],
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
        [] if SIMULATED["bnn"] else [rules.download_ood.output.source, rules.download_ood.output.images],
    output:
        data=[f"{RUN}/data/bnn.ood/{name}.npy" for name in ood_images.NAMES],
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
