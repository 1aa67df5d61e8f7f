"""Effective draws and R-hat: those of ArviZ, and what is no number there."""

import arviz as az
import numpy as np
import pytest
from stein_forms import autoregressive

from sgtune.metrics.mixing import COLUMNS, effective_draws, split_rhat


def chains_of(c, n, k, phi):
    """Chains whose neighbouring draws have the correlation ``phi``."""
    rng = np.random.default_rng(0)
    return np.stack([autoregressive(rng, n, k, phi) for _ in range(c)])


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.5, 0.9, 0.99])
def test_they_are_those_of_arviz(phi):
    values = chains_of(3, 500, 4, phi) + np.array([0.0, 1e4, 0.0, 0.0])
    values[0, :, 3] += 2
    ess = [float(az.ess(values[:, :, i], method="mean")) for i in range(4)]
    rhat = [float(az.rhat(values[:, :, i], method="split")) for i in range(4)]
    np.testing.assert_allclose(effective_draws(values), ess, rtol=1e-6)
    np.testing.assert_allclose(split_rhat(values), rhat, rtol=1e-6)


def test_columns_do_not_depend_on_those_beside_them(monkeypatch):
    values = chains_of(2, 101, 7, 0.7)
    values[1, 5, 2], values[:, :, 3] = np.inf, 4.0
    at_once, rhat = effective_draws(values), split_rhat(values)
    monkeypatch.setattr("sgtune.metrics.mixing.COLUMNS", 1)
    np.testing.assert_allclose(effective_draws(values), at_once, rtol=1e-12)
    assert COLUMNS > 1
    assert np.isnan([at_once[2], rhat[2], rhat[3]]).all()
    assert at_once[3] == 200


def test_draws_of_which_nothing_is_known_and_chains_that_are_stuck_apart():
    few, stuck = np.zeros((4, 3, 2)), np.broadcast_to([[[0.0]], [[1.0]]], (2, 50, 1))
    assert np.isnan([effective_draws(few), split_rhat(few)]).all()
    assert len(effective_draws(np.zeros((2, 9, 0)))) == len(split_rhat(np.zeros((2, 9, 0)))) == 0
    assert split_rhat(stuck) == np.inf
