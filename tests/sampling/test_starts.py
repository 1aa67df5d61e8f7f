"""Starts of several chains: as wide as they should be, about the mode that each chain's search found, with the control
variates there."""

import jax.numpy as jnp
import numpy as np
import pytest
from small_models import gaussian_model, mixture_model, model_of_prior

import sgtune
from sgtune import Arm, Budget, Preconditioner
from sgtune.mode.coordinates import resolve_preconditioner
from sgtune.mode.modes import modes_of
from sgtune.sampling.lockstep import independent_chains
from sgtune.sampling.starts import WIDER, wide_starts

PRECISION, MEAN = np.array([[2.0, -1.2], [-1.2, 1.5]]), np.array([0.5, -1.0])
GAUSSIAN = gaussian_model(PRECISION, MEAN)
FACTOR = np.array([[2.0, 0.0], [1.0, 0.5]])
PILOT = Preconditioner(np.array([3.0, 4.0]), FACTOR, np.array([30.0, 40.0]))


@pytest.mark.parametrize("scale", ["laplace", "pilot"])
def test_starts_have_twice_the_sds_of_the_approximation(scale):
    """The covariance of n normal draws in coordinates in which it is 1 has entries with sds of at most sqrt(2 / n)."""
    n = 4_000
    if scale == "laplace":
        starts = wide_starts(GAUSSIAN, n, None, modes_of(GAUSSIAN, 1), 0, 0)
        z = (starts.positions - MEAN) @ np.linalg.cholesky(PRECISION)
    else:
        starts = wide_starts(GAUSSIAN, n, PILOT, None, 0, 0)
        z = np.linalg.solve(FACTOR, (PILOT.positions(starts.positions) - PILOT.centre).T).T
    z /= WIDER
    assert np.abs(z.mean(axis=0)).max() < 4.5 / np.sqrt(n)
    assert np.abs(np.cov(z.T) - np.eye(2)).max() < 4.5 * np.sqrt(2 / n)
    assert starts.centres is None
    assert starts.remarks == ()


def test_starts_are_those_of_the_seed_and_the_replicate():
    first, again, *others = (
        wide_starts(GAUSSIAN, 3, PILOT, None, *names).positions
        for names in [(0, 0), (0, 0), (1, 0), (0, "b")]
    )
    np.testing.assert_array_equal(first, again)
    for other in others:
        assert np.abs(other - first).min() > 1e-6


@pytest.mark.parametrize("given", ["none", "laplace", PILOT])
def test_chains_have_these_starts_and_those_of_a_centre_need_no_search(given):
    model = gaussian_model(PRECISION, MEAN)
    still = {"step_size": 1e-20, "batch_size": 8, "budget": Budget(steps=1)}
    run = sgtune.sample(model, "sgld", **still, preconditioner=given, chains=3)
    assert (model.found.mode is None) == (run.modes is None) == (given is PILOT)
    coordinates = resolve_preconditioner(model, given)
    expected = wide_starts(model, 3, coordinates, run.modes, 0, 0).positions
    if coordinates is not None:
        expected = coordinates.positions(expected)
    np.testing.assert_allclose(run.draws[:, 0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("preconditioner", ["none", "laplace", "moved"])
def test_each_chain_starts_about_its_own_mode_and_has_its_centre(preconditioner):
    """A preconditioner that a pilot has moved by less than half the way between two modes stands for the nearer one."""
    model = mixture_model()
    modes = modes_of(model, 4)
    # The first search ends at no mode.
    own = np.maximum(modes.of_start, 0)
    assert set(own.tolist()) == {0, 1}
    coordinates, middles = None, modes.positions.copy()
    if preconditioner != "none":
        # The second mode's, so that what is usual is not the MAP.
        middles[1] += 0.0 if preconditioner == "laplace" else 1.0
        coordinates = Preconditioner(middles[1], np.full(2, 0.1))
    starts = wide_starts(model, 4, coordinates, modes, 0, 0)
    positions, centres = starts.positions, starts.centres
    if coordinates is not None:
        positions, centres = coordinates.positions(positions), coordinates.positions(centres)
    np.testing.assert_allclose(centres, middles[own], atol=1e-5)
    # The sds are about 0.1.
    assert np.abs(positions - centres).max() < 4.5 * WIDER * 0.15
    assert np.abs(positions - centres).min() > 1e-4
    assert len(starts.remarks) == 2


def test_control_variates_are_exact_at_each_chains_own_centre():
    """Chains at their centres, with one row of 200 in a minibatch: a step is e times the gradient there, about 0, plus
    noise of sd sqrt(2 e). With one centre for all, the other chain's step has an sd of hundreds of e."""
    model = mixture_model()
    modes = modes_of(model, 4).positions

    def moves(**centres):
        chains = independent_chains(model, "sgld-cv", Arm(0.01, 1), modes[[0, 1, 0]], **centres)
        return np.abs(chains.advance(1)[0] - modes[[0, 1, 0]]).max(axis=1), chains

    own, chains = moves(centres=modes[[0, 1, 0]])
    assert own.max() < 4.5 * np.sqrt(0.02)
    assert chains.program.own == ("centre", "gradient_at_centre")
    shared, _ = moves()
    assert shared[1] > 10 * np.sqrt(0.02)
    # A narrower ensemble keeps them.
    np.testing.assert_allclose(chains.narrow([1]).advance(1)[:, 0], chains.advance(1)[:, 1], atol=1e-5)


def test_chains_of_two_modes_do_not_agree_and_say_so():
    arviz = pytest.importorskip("arviz")
    arm = {"step_size": 2e-3, "batch_size": 20, "budget": Budget(steps=1_000)}
    with pytest.warns(UserWarning, match=r"^modes: the search found 2") as said:
        run = sgtune.sample(mixture_model(), "sgld-cv", **arm, chains=4)
    assert [str(one.message) for one in said] == run.warnings
    tree = run.to_arviz()
    assert float(arviz.rhat(tree)["position"].min()) > 1.05
    # The posterior's about 0.1; with the other mode's centre the noise of minibatches would be as large as its sds.
    assert run.draws[:, 100:].std(axis=1).max() < 0.16
    assert tree["posterior"].attrs["warnings"] == "\n".join(run.warnings)


def test_a_start_that_a_metropolis_test_never_leaves_is_reported():
    """A Gamma(2, 1), with mode 1 and curvature 1 there, ends at 0: some starts in given coordinates lie beyond."""
    model = model_of_prior(lambda x: jnp.sum(jnp.log(x) - x), jnp.ones(1), "gamma")
    given = Preconditioner(np.ones(1), np.ones(1))
    starts = given.positions(wide_starts(model, 8, given, None, 0, 0).positions)[:, 0]
    assert 0 < (starts < 0).sum() < 8
    arm = {"step_size": 0.1, "batch_size": 4, "budget": Budget(steps=40)}
    with pytest.warns(UserWarning, match="diverged"):
        run = sgtune.sample(model, "mala", **arm, chains=8, preconditioner=given)
    assert run.diverged == tuple((starts < 0).tolist())
    with pytest.raises(sgtune.InputError, match=r"^position: the log density"):
        sgtune.sample(model, "mala", **arm, chains=2, position=np.float32([[1], [-1]]))


def test_starts_stay_where_the_posterior_is_if_the_curvature_at_its_mode_misleads():
    """At the mode of -x^4 - y^4 / 2 - 1e-6 (x^2 + y^2) the curvature says sds of 700; the posterior's are 0.6."""
    model = model_of_prior(
        lambda x: -jnp.sum(jnp.array([1.0, 0.5]) * x**4) - 1e-6 * jnp.sum(x**2), jnp.full(2, 0.01), "quartic"
    )
    starts = wide_starts(model, 200, None, modes_of(model, 1), 0, 0).positions
    # Of a Gaussian a start is 24 nats below the mode, or less.
    assert (np.abs(starts) < 48**0.25).all()
    assert starts.std(axis=0).min() > 0.6
