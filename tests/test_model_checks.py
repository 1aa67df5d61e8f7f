"""What `define_model` refuses before a run: each of these once gave draws that looked well and were wrong."""

import re
import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import sgtune
from sgtune import Budget, define_model, from_log_densities, sample
from sgtune.model.checks import as_columns
from sgtune.model.derived import hold_out

N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2)).astype(np.float32)
Y = (X @ np.array([1.0, -1.0]) + RNG.normal(size=N)).astype(np.float32)
DATA = {"x": X, "y": Y}


def log_prior(position):
    return -0.5 * position @ position


def log_likelihood(position, rows):
    return -0.5 * (rows["y"] - rows["x"] @ position) ** 2


def model_of(data=DATA, **options):
    pieces = {"log_prior": log_prior, "log_likelihood": log_likelihood, "init": lambda key: jnp.zeros(2)}
    return define_model("m", data=data, **pieces | options)


def refusal(*args, **options):
    with pytest.raises(sgtune.InputError) as caught:
        model_of(*args, **options)
    return str(caught.value)


RARE = {"x": X, "y": (np.arange(N) == 17).astype(np.float32)}
"""The first rows have the same target, whichever they are."""


@pytest.mark.parametrize("data", [DATA, RARE])
@pytest.mark.parametrize(
    "wrong",
    [
        # A target of shape (N, 1): means of (n,) broadcast to (n, n), and the mean over an axis gives n numbers.
        lambda p, rows: (-0.5 * (rows["y"][:, None] - rows["x"] @ p) ** 2).mean(axis=1),
        lambda p, rows: (-0.5 * (rows["y"][:, None] - rows["x"] @ p) ** 2).mean(axis=0),
        # The habit of plates.
        lambda p, rows: N / len(rows["y"]) * log_likelihood(p, rows),
        # Batch normalisation.
        lambda p, rows: -0.5 * (rows["y"] - (rows["x"] - rows["x"].mean(axis=0)) @ p) ** 2,
        # The value of the row before.
        lambda p, rows: -0.5 * (rows["y"] - p[0] * jnp.append(0, rows["y"][:-1])) ** 2,
    ],
)
def test_a_row_whose_value_depends_on_other_rows_is_refused(wrong, data):
    line = r"log_likelihood: model 'm' gives row \d the value .*"
    assert re.fullmatch(line, refusal(data, log_likelihood=wrong))


def test_rows_may_have_values_of_any_size_and_of_minus_infinity():
    model_of(log_likelihood=lambda p, rows: 1e6 * log_likelihood(p, rows))
    model_of(log_likelihood=lambda p, rows: jnp.where(rows["y"] > 0, -jnp.inf, 0.0))
    assert model_of({"x": X[:1], "y": Y[:1]}).n_data == 1


def test_an_integer_leaf_in_a_position_is_refused():
    found = refusal(
        log_prior=lambda position: -0.5 * position["mean"] ** 2 - 0.5 * position["count"] ** 2,
        log_likelihood=lambda position, rows: rows["y"] * position["mean"],
        init=lambda key: {"mean": 0.0, "count": jnp.zeros((), int)},
    )
    assert re.fullmatch("init: 'count' of model 'm' has dtype int32, .*", found)
    found = refusal(init=lambda key: jnp.zeros(2, jnp.bfloat16))
    assert re.fullmatch("init: 'the position' of model 'm' has dtype bfloat16, .*float32.*", found)


def test_a_flat_prior_is_0_and_a_likelihood_is_no_tuple():
    flat = model_of(log_prior=lambda position: 0)
    chain = sample(flat, "sgld-cv", step_size=1e-4, batch_size=10, budget=Budget(steps=5))
    assert np.isfinite(chain.draws).all()
    found = refusal(log_likelihood=lambda p, rows: (log_likelihood(p, rows), 0.0))
    assert re.fullmatch(r"log_likelihood: model 'm' gives \(.*; it must give one value per datum", found)


@pytest.mark.parametrize(
    ("column", "line"),
    [
        (np.array(["a"] * N), "data: 'y' has dtype <U1"),
        (np.array([None] * N), "data: 'y' has dtype object"),
        (np.array(["a"] * N, np.dtypes.StringDType()), "data: 'y' has dtype StringDType"),
        (np.zeros(N, [("a", np.float32)]), "data: 'y' has dtype .*'a'"),
        (np.ma.masked_less(Y, np.sort(Y)[3]), "data: 'y' has missing values .* in 3 of 40 rows"),
        (np.arange(N).astype("datetime64[s]"), "data: 'y' has dtype datetime64"),
        (np.where(np.arange(N) < 3, np.nan, Y), r"data: 'y' has missing values \(NaN\) in 3 of 40 rows"),
        (2**32 + np.arange(N), "data: 'y' has the integer 4294967296, which 32 bits do not hold"),
        (1_700_000_000 + np.arange(N), "data: 'y' loses its values in float32: they move by up to "),
        (1.7e9 + np.arange(N), "data: 'y' loses its values in float32: they move by up to "),
        ((1.7e9 + np.arange(N)).astype(">f8"), "data: 'y' loses its values in float32"),
        ((1.7e9 + np.arange(N)).astype(np.longdouble), "data: 'y' loses its values in float32"),
        # A mark for what is missing.
        (
            np.where(np.arange(N) == 3, -np.finfo(np.float64).max, 1.0),
            r"data: 'y' has the value 1.8e\+308, or minus that",
        ),
        (np.c_[np.ones(N), 1.7e9 + np.arange(N)], "data: column 1 of 'y' loses its values"),
        (pd.Series(["a", None] * (N // 2), dtype="category"), "data: 'y' has missing values .* in 20 of 40"),
        (pd.Series([1, None] * (N // 2), dtype="Int64"), "data: 'y' has missing values .* in 20 of 40"),
        (pd.Series(["a"] * N), "data: 'y' has dtype "),
        (
            jnp.where(np.arange(N) < 3, jnp.nan, Y).astype(jnp.bfloat16),
            "data: 'y' has missing values .* in 3 of 40",
        ),
    ],
)
def test_a_column_that_is_no_float32_number_is_named(column, line):
    assert re.fullmatch(f"{line}.*", refusal({"x": X, "y": column}))


@pytest.mark.parametrize(
    "column",
    [
        np.full(N, 0.1),  # a constant is off by its rounding
        1.7e9 + 1e5 * np.arange(N),
        np.where(np.arange(N) < 3, np.inf, Y.astype(np.float64)),  # the end of an open interval
        np.arange(N).astype(np.int64),
        np.arange(N).astype(np.uint8),
        Y > 0,
    ],
)
def test_other_columns_keep_their_values(column):
    kept = model_of({"x": X, "y": column}, shuffle_seed=None, log_likelihood=lambda p, rows: rows["x"] @ p)
    assert kept.data["y"].dtype.itemsize <= 4
    np.testing.assert_allclose(kept.data["y"], column, rtol=1e-6)


def test_frames_are_dicts_of_their_columns():
    kind = pd.Categorical(np.where(Y > 0, "high", "low"))
    nullable = {"count": pd.array(np.arange(N), dtype="Int64"), "flag": pd.array(Y > 1, dtype="boolean")}
    frame = pd.DataFrame({"x": Y, "kind": kind, **nullable}, index=np.arange(N) + 100)
    columns = as_columns({"frame": frame, "series": frame["count"]})
    dtypes = {name: column.dtype.name for name, column in columns["frame"].items()}
    assert dtypes == {"x": "float32", "kind": "int32", "count": "int64", "flag": "bool"}
    np.testing.assert_array_equal(columns["frame"]["kind"], np.where(Y > 0, 0, 1))
    np.testing.assert_array_equal(columns["series"], np.arange(N))
    model = model_of(frame[["x", "count"]], log_likelihood=lambda p, rows: rows["x"] * p[0] + rows["count"])
    assert model.n_data == N
    twice = pd.concat([frame[["x"]], frame[["x"]]], axis=1)
    for same in (twice, frame[["x", "count"]].set_axis([1, "1"], axis=1)):
        assert re.fullmatch("data: columns .* names must differ.*", refusal(same))


def test_columns_of_files_have_their_values():
    """Big-endian numbers of FITS, and codes of categories."""
    found = as_columns({"x": X.astype(">f4"), "n": np.arange(N, dtype=">i8"), "f": X.astype(">f8")})
    assert all(leaf.dtype.isnative for leaf in found.values())
    np.testing.assert_array_equal(found["x"], X)
    np.testing.assert_array_equal(found["n"], np.arange(N))
    schools = pd.Categorical([10, 20, 30, 20] * 10)
    np.testing.assert_array_equal(as_columns({"school": schools})["school"], [0, 1, 2, 1] * 10)


def test_data_do_not_change_with_the_users_array():
    x = X.copy()
    # As pandas gives its columns.
    view = x.view()
    view.flags.writeable = False
    models = [model_of({"x": given, "y": Y}, shuffle_seed=None) for given in (x, view)]
    x += 1
    for model in models:
        np.testing.assert_array_equal(model.data["x"], X)


CLASSES = {"predict": lambda position, inputs: jax.nn.sigmoid(inputs @ position)}
COLUMN = {"predict": lambda position, inputs: (inputs @ position)[:, None], "task": "regression"}


@pytest.mark.parametrize(
    ("test_data", "options", "line"),
    [
        ({"targets": Y}, {}, "needs a dict with inputs and targets"),
        ({"inputs": X, "targets": Y[:3]}, CLASSES, "has 3 targets for predictions of shape (40,)"),
        ({"inputs": X, "targets": Y[:, None]}, {}, "they must be numbers (m,)"),
        ({"inputs": X, "targets": np.array(["a"] * N)}, {}, "they must be numbers (m,)"),
        ({"inputs": X, "targets": np.full(N, np.nan)}, {}, "targets that are not finite"),
        ({"inputs": X, "targets": Y}, {}, "integers from 0: number the classes, or give task='regression'"),
        ({"inputs": X, "targets": np.sign(Y)}, {}, "has the target -1; those of a classification"),
        ({"inputs": X, "targets": np.arange(N) % 3}, CLASSES, "has the target 2; .* integers from 0 to 1"),
        ({"inputs": X, "targets": Y}, COLUMN, "gives shape (40, 1); of a regression it must be (40,)"),
    ],
)
def test_targets_that_no_prediction_can_meet_are_refused(test_data, options, line):
    """The metrics would take -1 for the last class, and a real number for its integer part."""
    said = refusal(test_data=test_data, **options)
    assert re.search(line if ".*" in line else re.escape(line), said)
    held = model_of(
        predict=CLASSES["predict"], as_test=lambda rows: {"inputs": rows["x"], "targets": rows["y"]}
    )
    with pytest.raises(sgtune.InputError, match=r"^test_data: model 'm' has the target"):
        hold_out(held, 0.5)
    model_of(test_data={"inputs": X, "targets": Y}, task="regression")
    model_of(test_data={"inputs": X, "targets": Y > 0}, **CLASSES)


def test_shuffled_rows_keep_their_numbers():
    model = model_of()
    np.testing.assert_array_equal(model.data["y"], Y[model.row_numbers])
    assert model_of(shuffle_seed=None).row_numbers is None
    predicting = replace(
        model,
        task="regression",
        predict=lambda p, x: x @ p,
        as_test=lambda rows: {"inputs": rows["x"], "targets": rows["y"]},
    )
    held = hold_out(predicting, 0.25)
    np.testing.assert_array_equal(held.data["y"], Y[held.row_numbers])


def tree_of(dtype):
    """The model with a position of two leaves."""
    return model_of(
        {"x": X.astype(dtype), "y": Y.astype(dtype)},
        log_prior=lambda p: -0.5 * (p["w"][0] ** 2 + p["w"][1] ** 2),
        log_likelihood=lambda p, rows: -0.5 * (rows["y"] - rows["x"] @ jnp.stack(p["w"])) ** 2,
        init=lambda key: {"w": [0.0, 0.0]},
    )


def scaled(dtype):
    """A log density with an array of its own, which has 64 bits."""
    sds = jnp.ones(2)
    assert sds.dtype == dtype
    return model_of(log_prior=lambda position: -0.5 * jnp.sum((position / sds) ** 2))


@pytest.mark.parametrize("make", [tree_of, scaled])
@pytest.mark.parametrize(("sampler", "batch_size"), [("ccadl", 10), ("hmc", N), ("adam-mcmc-exact", N)])
def test_chains_run_in_float32_under_x64(sampler, batch_size, make):
    own = {"n_leapfrog": 3} if sampler == "hmc" else {}
    with jax.enable_x64(True):
        model = make(np.float64)
        leaves = jax.tree.leaves((model.data, model.position_shape))
        assert {leaf.dtype.name for leaf in leaves} == {"float32"}
        chain = sample(model, sampler, step_size=1e-4, batch_size=batch_size, budget=Budget(steps=20), **own)
    assert chain.draws.dtype == np.float32
    assert np.isfinite(chain.draws).all()


@pytest.mark.parametrize(
    ("log_prior", "highest"),
    [
        # A half-normal without its transform: the likelihood's mode is at the border.
        (lambda position: jnp.where(position > 0, -0.5 * position**2, -jnp.inf)[0], 1.0),
        # A Gamma(2, 1) as a formula: log x is NaN below 0, but 1 / x is not.
        (lambda position: (jnp.log(position) - position)[0], 0.5),
    ],
)
def test_draws_outside_the_support_are_counted(log_prior, highest):
    start, rows = jnp.full(1, 0.1), np.linspace(highest - 2, highest, 20, dtype=np.float32)
    model = model_of(
        rows,
        log_prior=log_prior,
        log_likelihood=lambda position, rows: -0.5 * (rows - position) ** 2,
        init=lambda key: start,
    )
    arm = {"step_size": 0.02, "batch_size": 20, "budget": Budget(steps=1_000)}
    with pytest.warns(UserWarning, match="% of the draws of 'm' have a log prior of -inf or NaN"):
        chain = sample(model, "sgld", **arm, position=start, centre=start)
    assert np.isfinite(chain.draws).all()
    outside = float((chain.draws <= 0).mean())
    assert outside > 0.3
    # 200 draws, which depend on one another, are looked at.
    assert float(chain.warnings[-1].partition("%")[0]) / 100 == pytest.approx(outside, abs=0.1)


def test_the_density_of_one_datum_is_vectorised():
    def of_one(position, row):
        assert row["x"].shape == (2,)
        return -0.5 * (row["y"] - row["x"] @ position) ** 2

    position = jnp.array([0.3, 0.7])
    one, again = (from_log_densities(log_prior, of_one, DATA, lambda key: jnp.zeros(2)) for _ in range(2))
    found = one.log_likelihood(position, DATA)
    np.testing.assert_allclose(found, log_likelihood(position, DATA), rtol=1e-6)
    assert again.log_likelihood == one.log_likelihood  # so that they share compiled programs


def test_a_missing_package_is_one_line_that_names_the_extra():
    """And nothing imports it before it is needed."""
    calls = {
        ("numpyro", "numpyro"): "sgtune.from_numpyro(None, {'x': 1})",
        ("arviz", "arviz"): "sgtune.bridges.arviz_trees.to_arviz([])",
        ("blackjax", "blackjax"): "sgtune.from_blackjax(None)",
        ("seaborn", "plots"): "sgtune.bridges.plots.plot_chains([], [])",
    }
    program = ["import sys", *(f"sys.modules[{package!r}] = None" for package, _ in calls)]
    program += ["import sgtune.bridges.arviz_trees, sgtune.bridges.plots"]
    for call in calls.values():
        program += [f"try: {call}", "except sgtune.InputError as error: print(error)"]
    done = subprocess.run([sys.executable, "-c", "\n".join(program)], capture_output=True, text=True)
    lines = [
        f"{package}: not installed; pip install 'sgtune[{extra}]' installs it" for package, extra in calls
    ]
    assert done.stdout.splitlines() == lines, done.stderr
