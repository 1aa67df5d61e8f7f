"""Small posteriors with known answers, and checks for every race, for the tests of samplers and tuners."""

import json
from dataclasses import fields, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import sgtune
from sgtune.model import define_model, log_sigmoid
from sgtune.tuning import TUNERS, Grid, Tuner

tune = partial(sgtune.tune, preconditioner="none")
"""One race of step sizes for the parameters themselves."""


def on_grid(name: str, grid: Grid, **numbers: object) -> Tuner:
    """The tuner of this name with ``grid`` and ``numbers``, as far as it has such."""
    given = {"grid": grid, **numbers}
    own = {entry.name: given[entry.name] for entry in fields(TUNERS[name]) if entry.name in given}
    return replace(TUNERS[name], **own)


def without_doubts(result):
    """The warnings of a result, without those of grids and horizons that are small on purpose."""
    return [line for line in result.warnings if not line.startswith(("log10_step_sizes: ", "horizon: "))]


def model_of_prior(log_prior, start, name="prior", **options):
    """A posterior that is its prior: the data say nothing."""
    own = {"log_prior": log_prior, "log_likelihood": lambda position, batch: 0.0 * batch}
    return define_model(name, data=np.zeros(4, np.float32), init=lambda key: start, **own, **options)


def gaussian_model(precision, mean, n_data=8):
    """The posterior N(mean, precision^-1): a quarter of the precision is the prior's, the rest is the data's.

    The data are pairs symmetric about the mean, so that gradients of minibatches are noisy.
    """
    precision, mean = jnp.asarray(precision, jnp.float32), jnp.asarray(mean, jnp.float32)
    offsets = np.random.default_rng(1).standard_normal((n_data // 2, len(mean))).astype(np.float32)

    def energy(difference):
        return 0.5 * jnp.sum((difference @ precision) * difference, axis=-1)

    return define_model(
        "gaussian",
        log_prior=lambda position: -0.25 * energy(position - mean),
        log_likelihood=lambda position, batch: -0.75 / n_data * energy(position - batch),
        data=np.asarray(mean) + np.concatenate([offsets, -offsets]),
        init=lambda key: jax.random.normal(key, mean.shape),
    )


def effects_model(y):
    """y_i ~ N(z_i, 0.5^2), z_i ~ N(u, 1), u ~ N(0, 10^2)."""
    start = {"u": jnp.zeros(()), "z": jnp.zeros(len(y))}
    return define_model(
        "effects",
        log_prior=lambda p: -0.5 * (p["u"] / 10) ** 2 - 0.5 * jnp.sum((p["z"] - p["u"]) ** 2),
        log_likelihood=lambda p, batch: -2 * (batch["y"] - p["z"][batch["i"]]) ** 2,
        data={"y": y.astype(np.float32), "i": np.arange(len(y))},
        init=lambda key: start,
    )


def mixture_model(n_data=200, init=None):
    """Rows of N(a, 1) and N(b, 1) in equal shares, centres about 4 apart: a and b may change places.

    Searches start at a = b unless ``init`` is given, where gradients never tell them apart.
    """
    rng = np.random.default_rng(0)
    rows = np.where(rng.random(n_data) < 0.5, -2, 2) + rng.standard_normal(n_data)
    return define_model(
        "mixture",
        log_prior=lambda position: -0.05 * position @ position,
        log_likelihood=lambda position, rows: jnp.logaddexp(
            -0.5 * (rows - position[0]) ** 2, -0.5 * (rows - position[1]) ** 2
        ),
        data=rows.astype(np.float32),
        init=init or (lambda key: jnp.zeros(2)),
    )


def logistic_arrays(n_data, dimension, seed):
    """Inputs (n_data, dimension), correlated and not centred, and targets of 0 and 1."""
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((n_data, dimension)) + 0.5 * rng.standard_normal((n_data, 1)) + 0.3
    inputs = inputs.astype(np.float32)
    position = rng.standard_normal(dimension)
    targets = rng.random(n_data) < 1 / (1 + np.exp(-inputs @ position))
    return inputs, targets.astype(np.uint8)


def _log_prior(position):
    return -0.05 * position @ position


def _log_likelihood(position, batch):
    return log_sigmoid(position @ batch["signed_inputs"].T)


def _predict(position, inputs):
    return jax.nn.sigmoid(position @ inputs.T)


def _as_test(rows):
    return {"inputs": rows["signed_inputs"], "targets": np.ones(len(rows["signed_inputs"]), np.uint8)}


def logistic_model(inputs, targets, name="logistic", **options):
    """Logistic regression with N(0, 10 I) prior; all such models share their compiled programs."""
    inputs, signs = np.asarray(inputs, np.float32), 2 * np.asarray(targets, np.float32) - 1
    dimension, data = inputs.shape[1], {"signed_inputs": inputs * signs[:, None]}
    return define_model(
        name,
        log_prior=_log_prior,
        log_likelihood=_log_likelihood,
        predict=_predict,
        as_test=_as_test,
        data=data,
        init=lambda key: jnp.sqrt(10.0) * jax.random.normal(key, (dimension,)),
        **options,
    )


def small_logistic_model(n_data=2_000, dimension=2, seed=0, **options):
    """`logistic_model` with 500 test rows."""
    inputs, targets = logistic_arrays(n_data + 500, dimension, seed)
    test_data = {"inputs": inputs[n_data:], "targets": targets[n_data:]}
    return logistic_model(inputs[:n_data], targets[:n_data], test_data=test_data, **options)


def check_rungs(result):
    """Arms with lower values survive, of equal ones the smaller step size wins, infinite values rank last, and the
    table and its JSON record all rungs."""
    table = result.rungs
    axes = list(table)[1 : list(table).index("steps")]

    def arms_of(rows):
        return set(rows[axes].astype(str).itertuples(index=False, name=None))

    for number, rung in table.groupby("rung"):
        values = rung["discrepancy"].astype(float).fillna(np.inf)
        assert (values >= 0).all()
        if rung["pruned"].any():
            assert values[~rung["pruned"]].max() <= values[rung["pruned"]].min()
        assert ((rung["reason"] != "") == (rung["pruned"] | np.isinf(values))).all()
        dead = f"rung {number}: {np.isinf(values).sum()} of "
        assert sum(line.startswith(dead) for line in result.warnings) == np.isinf(values).any()
        following = arms_of(table[table["rung"] == number + 1])
        assert following in (arms_of(rung[~rung["pruned"]]), set())
    last = table[table["rung"] == table["rung"].max()]
    values = last["discrepancy"].astype(float)
    best = last.loc[last.loc[values == values.min(), "step_size"].astype(float).idxmin()]
    assert result.best.items() >= best[axes].dropna().to_dict().items()
    assert result.steps == table.groupby(axes, dropna=False)["steps"].max().sum()
    json.dumps(result.to_dict(), allow_nan=False)
