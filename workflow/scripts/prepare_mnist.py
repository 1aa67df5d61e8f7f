"""Prepare MNIST, or simulate a similar set."""

from sgtune.study.pipeline.job import job

with job(snakemake, saved=False) as this:
    from pathlib import Path

    from sgtune.study.posteriors import mnist
    from sgtune.study.posteriors.downloads import MNIST
    from sgtune.study.posteriors.store import check_files

    settings = this.settings["data"]["bnn"]
    n_simulated = settings["simulated"]
    if n_simulated is None:
        folder = Path(snakemake.input[0]).parent
        check_files(folder, MNIST.sha256)
        arrays, made_by = mnist.read_set(folder), "MNIST"
    else:
        arrays, made_by = mnist.simulate(n_simulated), "sgtune.study.posteriors.mnist.simulate"
    mnist.write(snakemake.output.facts, arrays, made_by=made_by, n_hidden=settings["n_hidden"])
    this.sign(snakemake.output.facts, "bnn")
