"""The kept draws of a chain: few, evenly spaced, in bounded memory, and its last position; and several chains."""

from collections import OrderedDict
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
from small_models import gaussian_model, model_of_prior

from sgtune import Budget, Chain, Chains, InputError, define_model, sample
from sgtune.model.derived import localise
from sgtune.sampling import by_clock
from sgtune.sampling import chain as chain_module
from sgtune.sampling.by_clock import calibrate_cost
from sgtune.support.errors import DataError

matplotlib.use("Agg")

pytestmark = pytest.mark.optimised

STEP = 2.0**-30
"""The step size with which `counting_model` moves by 1 in each step of SGLD, up to noise of 4e-5."""


@cache
def counting_model(dimension=1):
    """A position that counts its steps: the gradient is one over `STEP`."""
    return model_of_prior(lambda position: jnp.sum(position) / STEP, jnp.zeros(dimension), "counting")


@cache
def exploding_model():
    """A position that triples in each step of SGLD with step size 1, and overflows float32 after 80 steps."""
    return model_of_prior(lambda position: jnp.sum(position**2), jnp.ones(1), "exploding")


def count(budget, kept_draws, dimension=1):
    """A chain whose draws are the numbers of their steps."""
    arm = {"step_size": STEP, "batch_size": 2, "position": np.zeros(dimension, np.float32)}
    model = counting_model(dimension)
    return sample(model, "sgld", **arm, budget=budget, kept_draws=kept_draws)


def check_kept(chain, at_most):
    """Draws are from every stride-th step, all steps are counted, and half the stride would keep too many draws."""
    steps = chain.stride * np.arange(1, len(chain.draws) + 1)
    np.testing.assert_array_equal(np.round(chain.draws[:, 0]), steps)
    assert len(chain.draws) == chain.n_samples // chain.stride
    assert len(chain.draws) <= at_most
    assert chain.stride == 1 or len(chain.draws) > at_most // 2 - 1


@pytest.mark.parametrize("kept_draws", [1, 2, 7, 100, 500, 10**6])
def test_kept_draws_are_few_and_even_by_the_clock_and_by_a_number_of_steps(by_steps, kept_draws):
    chain = count(Budget(steps=1_000), kept_draws)
    assert chain.n_samples == 1_000
    check_kept(chain, kept_draws)
    by_steps(1e-4)
    chain = count(Budget(seconds=0.15), kept_draws)
    check_kept(chain, kept_draws)
    assert chain.n_samples == pytest.approx(1_500, abs=1)
    assert chain.clock[-1] == (chain.seconds, chain.n_samples)
    for at, steps in chain.clock:
        assert chain.made_by(at) == steps


@pytest.mark.parametrize("kept_draws", [1, 2, 64, 1_000])
def test_a_chain_that_diverges_between_kept_draws_ends_there(by_steps, kept_draws):
    by_steps(0.001)
    arm = {"step_size": 1.0, "batch_size": 2, "position": np.ones(1, np.float32)}
    with pytest.warns(UserWarning, match="the chain diverged: give a smaller"):
        chain = sample(exploding_model(), "sgld", **arm, budget=Budget(seconds=60), kept_draws=kept_draws)
    assert chain.diverged
    assert 80 <= chain.n_samples < 110
    assert chain.n_samples % chain.stride > 0 or kept_draws >= 64
    assert not np.isfinite(chain.draws[-1]).all()
    assert 1 <= len(chain.draws) == chain.n_samples // chain.stride <= kept_draws


GAUSSIAN = gaussian_model([[2.0, -1.2], [-1.2, 1.5]], [0.5, -1.0], n_data=40)


def test_chains_are_a_sequence_of_chains_with_their_draws_side_by_side():
    run = sample(GAUSSIAN, "sgld-cv", step_size=0.1, batch_size=4, budget=Budget(steps=30), chains=3)
    assert len(run) == 3
    assert all(isinstance(chain, Chain) for chain in run)
    assert run.draws.shape == (3, 30, 2)
    np.testing.assert_array_equal(run.draws[1], run[1].draws)
    np.testing.assert_array_equal(run.positions, run.draws)
    np.testing.assert_array_equal(run.constrained()["position"], run.draws)
    assert run.diverged == (False, False, False)
    assert run.warnings == []
    # Of each row of a minibatch the gradient at the position and at the centre.
    assert run.data_terms == 3 * 30 * 2 * 4
    assert run.cost["total"] == run.cost["chains"] == {"data_terms": 720, "seconds": run.seconds}
    again = sample(GAUSSIAN, "sgld-cv", step_size=0.1, batch_size=4, budget=Budget(steps=30), chains=3)
    np.testing.assert_array_equal(again.draws, run.draws)


def test_budgets_of_data_terms_and_of_seconds_are_those_of_each_chain(by_steps):
    """The clock is that of all chains together, in which each has its share."""
    arm = {"step_size": 0.1, "batch_size": 4}
    of_terms = sample(GAUSSIAN, "sgld", **arm, budget=Budget(gradients=100), chains=2)
    assert [chain.n_samples for chain in of_terms] == [25, 25]
    by_steps(1e-3)
    for chain in sample(GAUSSIAN, "sgld", **arm, budget=Budget(seconds=0.1), chains=3):
        assert chain.n_samples == pytest.approx(300, abs=1)
        assert chain.seconds == pytest.approx(0.1, abs=1e-3)
        assert chain.clock[-1] == (chain.seconds, chain.n_samples)


@cache
def drifting_model():
    """The gradient is the same everywhere, the sum of the rows: a chain's path shows its minibatches."""
    rows = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    own = {"log_prior": lambda p: 0.0 * jnp.sum(p), "log_likelihood": lambda p, rows: rows * p[0]}
    return define_model("drifting", data=rows - rows.mean(), init=lambda key: jnp.zeros(1), **own)


@pytest.mark.parametrize("batch_size", [1, 50])
def test_no_two_chains_share_minibatches_or_noise(batch_size):
    """Each chain moves in a step by e N/n times the sum of n rows, plus noise of sd sqrt(2 e); e is such that the rows
    have nearly all of the variance, or nearly none."""
    arm = {"batch_size": batch_size, "budget": Budget(steps=2_000), "position": np.zeros(1, np.float32)}
    for share in (1e4, 1e-4):
        step_size = 2 * share * batch_size / 100**2
        run = sample(drifting_model(), "sgld", step_size=step_size, **arm, chains=4)
        moves = np.diff(run.draws[:, :, 0], axis=1)
        others = np.corrcoef(moves)[np.triu_indices(4, 1)]
        assert np.abs(others).max() < 4.5 / np.sqrt(2_000)


def test_a_chain_that_dies_is_named_and_kept():
    """SGLD with this step size is stable only near the mode of a quartic."""
    quartic = model_of_prior(lambda position: -0.25 * jnp.sum(position**4), jnp.ones(1), "quartic")
    arm = {"step_size": 0.1, "batch_size": 4, "budget": Budget(steps=50)}
    with pytest.warns(UserWarning, match="1, 3 of 4 diverged") as said:
        run = sample(quartic, "sgld", **arm, position=np.float32([[0], [50], [1], [-70]]), chains=4)
    assert [str(one.message) for one in said] == run.warnings
    assert run.diverged == (False, True, False, True)
    assert np.isfinite(run.draws).all(axis=(1, 2)).tolist() == [True, False, True, False]
    assert run.draws.shape == (4, 50, 1)
    # Of a slice by its own numbers.
    assert run[::2].warnings == []
    assert run[1:3].warnings[0].startswith("chains: 0 of 2 diverged")


def test_all_chains_together_keep_no_more_than_the_bytes_of_one(monkeypatch):
    monkeypatch.setattr(chain_module, "KEPT_BYTES", 4 * 2 * 12)
    arm = {"step_size": 0.1, "batch_size": 4, "budget": Budget(steps=24)}
    assert sample(GAUSSIAN, "sgld", **arm).draws.shape == (12, 2)
    assert sample(GAUSSIAN, "sgld", **arm, chains=4).draws.shape == (4, 3, 2)
    assert sample(GAUSSIAN, "sgld", **arm, chains=4, kept_draws=2).draws.shape == (4, 2, 2)


def tree_model(a, b):
    """N(0, I), whose position is a dict of leaves like these."""
    return model_of_prior(lambda p: -0.5 * (jnp.sum(p["a"] ** 2) + jnp.sum(p["b"] ** 2)), {"a": a, "b": b})


def test_starts_are_one_for_all_or_one_for_each():
    still = {"step_size": 1e-20, "batch_size": 4, "budget": Budget(steps=1), "chains": 3}
    each = np.float32([[1, 2], [3, 4], [-5, 6]])
    for options in ({}, {"preconditioner": "laplace"}):
        for position in (each, each[0]):
            run = sample(GAUSSIAN, "sgld", **still, **options, position=position)
            np.testing.assert_allclose(run.draws[:, 0], np.broadcast_to(position, (3, 2)), atol=1e-5)
    tree = tree_model(jnp.zeros(()), jnp.zeros((2, 2)))
    starts = {"a": np.arange(3.0), "b": np.arange(12.0).reshape(3, 2, 2)}
    found = sample(tree, "sgld", **still, position=starts).positions
    assert jax.tree.map(np.shape, found) == {"a": (3, 1), "b": (3, 1, 2, 2)}
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one[:, 0], other, atol=1e-5), found, starts)


def test_a_start_whose_leaves_are_in_another_order_is_refused():
    """An ordered dict equals a dict of the same entries, but is not sorted when it is flattened."""
    tree = tree_model(jnp.zeros(2), jnp.zeros(2))
    still = {"step_size": 1e-20, "batch_size": 4, "budget": Budget(steps=1)}
    other = OrderedDict(b=np.ones(2), a=np.zeros(2))
    several = jax.tree.map(lambda leaf: np.stack([leaf] * 3), other)
    for options in ({"position": other}, *({"position": one, "chains": 3} for one in (other, several))):
        with pytest.raises(InputError, match=r"^position: shape OrderedDict.* is not allowed"):
            sample(tree, "sgld", **still, **options)
    with pytest.raises(InputError, match=r"^around: shape OrderedDict.* is not allowed"):
        localise(tree, other, 1.0)


def test_a_loaded_chain_is_the_same(tmp_path):
    chain = count(Budget(steps=200), 20, dimension=2)
    chain = replace(chain, clock=[(0.5, 100), (1.0, 200)], statistics={"acceptance_rate": float("nan")})
    path = tmp_path / "chain.npz"
    chain.save(path)
    model = counting_model(2)
    loaded = Chain.load(path, model)
    np.testing.assert_array_equal(loaded.draws, chain.draws)
    assert loaded.draws.dtype == np.float32
    np.testing.assert_equal({**vars(loaded), "draws": None}, {**vars(chain), "draws": None})
    assert repr(loaded) == repr(chain)
    assert len(repr(chain)) < 250
    with pytest.raises(InputError, match="model: 'counting' has dimension 1"):
        Chain.load(path, counting_model())
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match=r"chain\.npz: not a readable"):
        Chain.load(path, model)


def test_a_chain_knows_its_numbers_and_coordinates_and_can_be_run_again(tmp_path):
    numbers = {"step_size": 0.1, "batch_size": 4, "friction": 0.5}
    options = {"budget": Budget(steps=30), "seed": 2}
    chain = sample(GAUSSIAN, "sgnht-cv", **numbers, preconditioner="laplace", **options)
    assert chain.arm.items() > numbers.items()
    again = sample(GAUSSIAN, "sgnht-cv", **chain.arm, **options)
    np.testing.assert_array_equal(again.draws, chain.draws)
    chain.save(tmp_path / "chain.npz")
    assert Chain.load(tmp_path / "chain.npz", GAUSSIAN).arm == chain.arm
    with np.load(tmp_path / "chain.npz") as arrays:
        kept = {name: arrays[name] for name in arrays.files if name != "draws"}
    np.savez(tmp_path / "chain.npz", **kept)
    with pytest.raises(DataError, match=r"chain\.npz: lacks draws"):
        Chain.load(tmp_path / "chain.npz", GAUSSIAN)


@pytest.mark.parametrize("preconditioner", ["none", "laplace"])
def test_chains_are_checked_saved_and_plotted_together(tmp_path, preconditioner):
    options = {"budget": Budget(steps=60), "chains": 3, "preconditioner": preconditioner}
    run = sample(GAUSSIAN, "sgld-cv", step_size=0.1, batch_size=4, **options)
    run = replace(run, check_cost={"data_terms": 7, "seconds": 0.5})
    run.save(tmp_path / "run.npz")
    loaded = Chains.load(tmp_path / "run.npz", GAUSSIAN)
    np.testing.assert_array_equal(loaded.draws, run.draws)
    assert [repr(chain) for chain in loaded] == [repr(chain) for chain in run]
    assert repr(loaded) == repr(run)
    assert loaded[0].arm == run[0].arm
    assert (loaded.warnings, loaded.seconds) == (run.warnings, run.seconds)
    assert run.modes is not None
    for ours, theirs in zip(loaded.modes, run.modes, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(DataError, match="has a sequence of chains"):
        Chain.load(tmp_path / "run.npz", GAUSSIAN)
    diagnosis = run.check()
    assert diagnosis.n_draws == 180
    assert run[1:].check().n_draws == 120
    assert run[1:].cost["chains"]["data_terms"] == run.cost["chains"]["data_terms"] * 2 / 3
    assert run[1:].seconds == pytest.approx(run.seconds * 2 / 3)
    assert run[3:] == ()
    np.testing.assert_array_equal(run[1:].draws, run.draws[1:])
    assert [run.index(chain) for chain in run] == [0, 1, 2]
    assert run[0] not in loaded
    (row,) = run.plot(most=1, diagnosis=diagnosis)
    place = int(diagnosis.table.index[0][-2])
    for line, chain in zip(row[0].lines, run, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), chain.draws[:, place])
    matplotlib.pyplot.close("all")


def test_one_draw_of_each_of_several_chains_is_saved(tmp_path):
    """Flat draws of shape (2, 1, D) are no positions of shape (1, D)."""
    model = model_of_prior(lambda p: -0.5 * jnp.sum(p**2), jnp.zeros((1, 3)))
    run = sample(model, "sgld", step_size=0.1, batch_size=4, budget=Budget(steps=9), chains=2, kept_draws=1)
    run.save(tmp_path / "run.npz")
    np.testing.assert_array_equal(Chains.load(tmp_path / "run.npz", model).draws, run.draws)


@pytest.mark.parametrize(("step", "n_slow"), [(1e-3, 15), (0.3, 2)])
def test_a_machine_that_is_slow_for_a_moment_is_slow_for_no_shape(by_steps, monkeypatch, step, n_slow):
    by_steps(step)
    usual, shapes = by_clock.perf_counter, [("sgld", 4, None), ("sghmc", 4, 2)]
    # The first steps take ten times as long: all those of the first shape in the first pass.
    monkeypatch.setattr(by_clock, "perf_counter", lambda: usual() + 9 * min(usual(), n_slow * step))
    table = calibrate_cost(GAUSSIAN, shapes)
    assert table.seconds_per_step == pytest.approx(dict.fromkeys(shapes, step))


def test_a_calibrated_cost_is_the_seconds_of_a_step(by_steps):
    by_steps(1e-3)
    table = calibrate_cost(GAUSSIAN, [("sgld", 4, None), ("sghmc", 4, 2)])
    assert table.seconds_per_step == pytest.approx({("sgld", 4, None): 1e-3, ("sghmc", 4, 2): 1e-3})
    in_coordinates = calibrate_cost(GAUSSIAN, [("sgld", 4, None)], preconditioner=np.ones(2))
    assert in_coordinates.seconds_per_step == pytest.approx({("sgld", 4, None): 1e-3})
    with pytest.raises(InputError, match=r"^preconditioner: "):
        calibrate_cost(GAUSSIAN, [("sgld", 4, None)], preconditioner=np.ones(3))
