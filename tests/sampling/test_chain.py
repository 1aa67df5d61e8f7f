"""The kept draws of a chain: few, evenly spaced, in bounded memory, and its last position."""

from dataclasses import replace
from functools import cache

import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
from small_models import model_of_prior

from sgtune import Budget, Chain, sample
from sgtune.support.errors import DataError, InputError

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


@pytest.mark.parametrize("kept_draws", [1, 2, 7, 100, 10**6])
def test_draws_kept_by_the_clock_are_few_and_even(by_steps, kept_draws):
    by_steps(1e-4)
    chain = count(Budget(seconds=0.15), kept_draws)
    check_kept(chain, kept_draws)
    assert chain.n_samples == pytest.approx(1_500, abs=1)
    assert chain.clock[-1] == (chain.seconds, chain.n_samples)
    for at, steps in chain.clock:
        assert chain.made_by(at) == steps


@pytest.mark.parametrize("kept_draws", [1, 7, 500, 1_000])
def test_draws_kept_of_a_number_of_steps_are_few_and_even(kept_draws):
    chain = count(Budget(steps=1_000), kept_draws)
    assert chain.n_samples == 1_000
    check_kept(chain, kept_draws)


@pytest.mark.parametrize("kept_draws", [1, 2, 64, 1_000])
def test_a_chain_that_diverges_between_kept_draws_ends_there(by_steps, kept_draws):
    by_steps(0.001)
    chain = sample(
        exploding_model(),
        "sgld",
        step_size=1.0,
        batch_size=2,
        position=np.ones(1, np.float32),
        budget=Budget(seconds=60),
        kept_draws=kept_draws,
    )
    assert chain.diverged
    assert 80 <= chain.n_samples < 110
    assert chain.n_samples % chain.stride > 0 or kept_draws >= 64
    assert not np.isfinite(chain.draws[-1]).all()
    assert 1 <= len(chain.draws) == chain.n_samples // chain.stride <= kept_draws


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


def test_traces_are_of_the_worst_parameters():
    chain = count(Budget(steps=200), 50, dimension=3)
    diagnosis = chain.check()
    axes = chain.plot(most=2, diagnosis=diagnosis)
    assert [row[0].get_ylabel() for row in axes] == diagnosis.table.index[:2].tolist()
    place = int(diagnosis.table.index[1].partition("[")[2][:-1])
    (line,) = axes[1][0].lines
    np.testing.assert_array_equal(line.get_ydata(), chain.draws[:, place])
    assert line.get_xdata()[-1] == 200
    matplotlib.pyplot.close("all")
