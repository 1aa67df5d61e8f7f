"""A model of one's own for the pipeline: linear regression with unknown noise on scikit-learn's diabetes data, whose
columns stay as they are. `snakemake --cores all --config model=examples/my_model.py` tunes and checks three samplers.
"""

import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_diabetes

import sgtune

# Other files that the model depends on, from the folder of this one: when one changes, the results are made again.
DATA_FILES = []


def model():
    columns, y = load_diabetes(return_X_y=True, scaled=False)
    x = np.c_[np.ones(len(columns)), columns]
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:350], order[350:]

    def log_prior(position):
        # Slopes ~ N(0, 100^2), log sd ~ N(4, 2^2).
        return -0.5 * jnp.sum((position["slopes"] / 100) ** 2) - 0.5 * ((position["log_sd"] - 4) / 2) ** 2

    def log_likelihood(position, batch):
        residual = batch["y"] - batch["x"] @ position["slopes"]
        return -0.5 * (residual * jnp.exp(-position["log_sd"])) ** 2 - position["log_sd"]

    return sgtune.define_model(
        "diabetes",
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        data={"x": x[train], "y": y[train]},
        init=lambda key: {"slopes": jnp.zeros(11), "log_sd": jnp.asarray(4.0)},
        predict=lambda position, inputs: inputs @ position["slopes"],
        test_data={"inputs": x[test], "targets": y[test]},
        task="regression",
    )
