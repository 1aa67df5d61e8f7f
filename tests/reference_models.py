"""Posteriors with exact moments, for the tests of the mode, the curvature and NUTS."""

import jax
import jax.numpy as jnp
import numpy as np
from small_models import logistic_arrays, logistic_model, model_of_prior

from sgtune.mode.find import map_result
from sgtune.model import define_model

DIMENSION = 4


def logistic_of_four():
    """Logistic regression with 2,000 rows of four inputs, without shuffling."""
    return logistic_model(*logistic_arrays(2_000, DIMENSION, seed=1), shuffle_seed=None)


def newton(model):
    """The mode of the logistic posterior and its Hessian there, in float64."""
    inputs = np.asarray(model.data["signed_inputs"], np.float64)
    position = np.zeros(inputs.shape[1])
    for _ in range(50):
        probability = 1 / (1 + np.exp(inputs @ position))
        gradient = inputs.T @ probability - position / 10
        weights = (probability * (1 - probability))[:, None]
        hessian = (inputs * weights).T @ inputs + np.eye(len(position)) / 10
        position = position + np.linalg.solve(hessian, gradient)
    return position, hessian


def gaussian_model(name="gaussian", n_rows=100, **settings):
    """Linear regression with known noise: an exactly Gaussian posterior, with its mean and covariance.

    The position is a dict, so that the tests include pytrees.
    """
    rng = np.random.default_rng(3)
    inputs = (rng.normal(size=(n_rows, 2)) @ [[1.0, 0.9], [0.0, 0.4]]).astype(np.float32)
    targets = (0.5 + inputs @ [1.0, -2.0] + rng.normal(size=n_rows)).astype(np.float32)
    own = {"log_prior": standard_normal, "log_likelihood": gaussian_log_likelihood, "task": "regression"}
    own |= {"data": {"inputs": inputs, "targets": targets}, "shuffle_seed": None}

    def init(key):
        return {"slopes": jax.random.normal(key, (2,)), "intercept": jnp.zeros(())}

    # In the order of ravel_pytree: intercept, slopes.
    design = np.column_stack([np.ones(n_rows), inputs]).astype(np.float64)
    precision = design.T @ design + np.eye(3)
    mean, covariance = np.linalg.solve(precision, design.T @ targets), np.linalg.inv(precision)
    return define_model(name, init=init, **own | settings), mean, covariance


def standard_normal(position):
    """Log density of N(0, I), up to a constant."""
    return -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(position))


def gaussian_log_likelihood(position, batch):
    mean = position["intercept"] + batch["inputs"] @ position["slopes"]
    return -0.5 * (batch["targets"] - mean) ** 2


def products(position):
    """The functionals of `short_run`, from two of its three parameters."""
    return position["intercept"] * position["slopes"]


def short_run(folder, *, functionals=products, moved=None, **changes):
    """A chain of 50 + 130 iterations of NUTS in blocks of 40, checkpointed in ``folder``; the mode may be ``moved``."""
    from sgtune.study.ground_truth import nuts

    model, _, _ = gaussian_model(functionals=functionals)
    if moved is not None:
        found = map_result(model)
        model.found.mode = found._replace(position=jax.tree.map(moved, found.position))
    settings = {"n_warmup": 50, "n_draws": 130, "seed": 2, "chain": 1, "block": 40, **changes}
    return nuts.sample_nuts(model, checkpoint_dir=folder, **settings)


def wide_model(dimension, name="wide", functionals=None):
    """N(0, I) in any dimension, whose position is one array."""
    return model_of_prior(standard_normal, jnp.zeros(dimension), name, functionals=functionals)


def one_chain(model, matrix, *, attributes=None, keep_every=1, **statistics):
    """A chain of the rows of ``matrix``: every ``keep_every``-th is kept, with the moments of all."""
    from sgtune.study.ground_truth import draws

    matrix, n = matrix.astype(np.float32), len(matrix)
    functionals = None
    if model.functionals is not None:
        values = np.asarray(model.functionals(matrix))
        functionals = values, draws.add_draws(None, values)
    own = {"n_steps": np.full(n, 7), "diverging": np.zeros(n, bool), "energy": np.arange(n) % 5.0}
    kept, moments = matrix[keep_every - 1 :: keep_every], draws.add_draws(None, matrix)
    about = {"seconds": 1.0, **(attributes or {})}
    return draws.to_inference_data(
        model, kept, own | statistics, about, moments=moments, every=keep_every, functionals=functionals
    )
