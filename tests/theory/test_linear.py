"""The scalar recursions against naive matrix equations and simulated chains, in float64."""

import numpy as np
import pytest

from sgtune.sampling.arm import Arm
from sgtune.support.errors import InputError
from sgtune.theory.averages import sd_error, variance_of_run
from sgtune.theory.linear import Directions, expected_errors, expected_run, stationary_variances
from sgtune.theory.recursions import run_warmth, settled_friction

N_DATA, BATCH = 100, 10
FACTOR = N_DATA * (N_DATA - BATCH) / BATCH
FRICTION, NOISE_ESTIMATE = 0.1, 0.04


@pytest.fixture(scope="module")
def posterior():
    """A Hessian and a covariance of gradients that do not commute, and their directions."""
    rng = np.random.default_rng(0)
    hessian, noise = (part @ part.T / 4 + 0.2 * np.eye(4) for part in rng.standard_normal((2, 4, 4)))
    curvature, basis = np.linalg.eigh(hessian)
    return hessian, noise / 100, basis, Directions(curvature, np.diag(basis.T @ noise @ basis) / 100, N_DATA)


def iterated(transition, noise):
    """The limit of S <- A S A' + Q from 0, after 2^40 iterations by squaring."""
    covariance = noise
    for _ in range(40):
        covariance = covariance + transition @ covariance @ transition.T
        transition = transition @ transition
    return covariance


def leapfrogs(name, hessian, h, n_leapfrog, noise):
    """One sample of SGHMC as matrices of (x, v), with a new v: its effect on x, and the covariance that it adds."""
    eye, zero = np.eye(len(hessian)), np.zeros_like(hessian)
    drift = np.block([[eye, eye], [zero, eye]])
    whole, added = np.eye(2 * len(eye)), np.block([[zero, zero], [zero, h * eye]])
    injected = FRICTION - NOISE_ESTIMATE
    for i in range(n_leapfrog):
        length = 0.5 if name == "sghmc" and i == 0 else 1.0
        kick = np.block([[eye, zero], [-length * h * hessian, (1 - length * FRICTION) * eye]])
        fresh = np.block([[zero, zero], [zero, length * 2 * injected * h * eye + (length * h) ** 2 * noise]])
        if name == "sghmc":
            step, fresh = drift @ kick, drift @ fresh @ drift.T
        elif name == "sghmc-chen":
            step = kick @ drift
        else:
            step = kick + drift - np.eye(2 * len(eye))
        whole, added = step @ whole, step @ added @ step.T + fresh
    d = len(eye)
    return whole[:d, :d], added[:d, :d]


@pytest.mark.parametrize("name", ["sgld", "sgld-cv"])
def test_sgld_solves_its_matrix_equation(posterior, name):
    hessian, noise, basis, directions = posterior
    h, of_rows = 0.05, FACTOR * noise * (name == "sgld")
    covariance = iterated(np.eye(4) - h * hessian, 2 * h * np.eye(4) + h**2 * of_rows)
    found = stationary_variances(name, Arm(h, BATCH), directions)
    np.testing.assert_allclose(found, np.diag(basis.T @ covariance @ basis), rtol=1e-10)


@pytest.mark.parametrize("name", ["sghmc", "sghmc-chen", "sghmc-as-published"])
def test_sghmc_solves_its_matrix_equation(posterior, name):
    hessian, noise, basis, directions = posterior
    covariance = iterated(*leapfrogs(name, hessian, 0.02, 3, FACTOR * noise))
    arm = Arm(0.02, BATCH, 3, friction=FRICTION, noise_estimate=NOISE_ESTIMATE)
    found = stationary_variances(name, arm, directions)
    np.testing.assert_allclose(found, np.diag(basis.T @ covariance @ basis), rtol=1e-10)


def in_phase_space(hessian, h, drift, friction, fresh):
    """The covariance of (x, v) under v' = (1 - friction) v - h H x + N(0, fresh), x' = x + drift v, in either order."""
    eye, zero = np.eye(4), np.zeros((4, 4))
    moved = np.block([[eye, drift * eye], [zero, eye]])
    kick = np.block([[eye, zero], [-h * hessian, (1 - friction) * eye]])
    fresh = np.block([[zero, zero], [zero, fresh]])
    return iterated(moved @ kick, moved @ fresh @ moved.T), iterated(kick @ moved, fresh)


def test_sgnht_solves_its_matrix_equation_with_the_kinetic_energy_on_target(posterior):
    hessian, noise, basis, directions = posterior
    h, arm = 0.01, Arm(0.01, BATCH, friction=FRICTION)
    alpha = settled_friction(arm, directions.curvature, FACTOR * directions.noise)
    fresh = 2 * FRICTION * h * np.eye(4) + h**2 * FACTOR * noise
    covariance, _ = in_phase_space(hessian, h, 1, alpha, fresh)
    assert np.trace(covariance[4:, 4:]) / 4 == pytest.approx(h, rel=1e-9)
    assert alpha > FRICTION
    found = stationary_variances("sgnht", arm, directions)
    np.testing.assert_allclose(found, np.diag(basis.T @ covariance[:4, :4] @ basis), rtol=1e-9)


@pytest.mark.parametrize("friction", [2.0, 1e-4])
def test_sghmc_of_eq_14_solves_its_matrix_equation(posterior, friction):
    """The injected noise is reduced by the gradient noise; at the second friction it is clipped at zero."""
    hessian, noise, basis, directions = posterior
    h = 0.1
    left = friction * np.eye(4) - h / 2 * FACTOR * noise
    assert (np.linalg.eigvalsh(left) > 0).all() == (friction == 2.0)
    fresh = 2 * h * (left if friction == 2.0 else 0 * left) + h**2 * FACTOR * noise
    _, covariance = in_phase_space(hessian, h, h, h * friction, fresh)
    found = stationary_variances("sghmc-shang", Arm(h, BATCH, friction=friction), directions)
    np.testing.assert_allclose(found, np.diag(basis.T @ covariance[:4, :4] @ basis), rtol=1e-8)


@pytest.mark.parametrize("name", ["sgld", "sgld-cv"])
def test_noise_that_grows_with_the_spread_is_iterated(name):
    rng = np.random.default_rng(1)
    curvature, noise, slopes = rng.uniform(0.5, 2, 3), rng.uniform(0, 0.01, 3), rng.uniform(0, 0.02, (3, 3))
    h, naive = 0.03, np.zeros(3)

    def found(*slopes):
        return stationary_variances(name, Arm(h, BATCH), Directions(curvature, noise, N_DATA, *slopes))

    for _ in range(5_000):
        gradient = FACTOR * ((name == "sgld") * noise + slopes @ naive)
        naive = (1 - h * curvature) ** 2 * naive + 2 * h + h**2 * gradient
    np.testing.assert_allclose(found(slopes), naive, rtol=1e-9)
    # The form for large D has the larger of two: for the mean over all directions, and for each direction alone.
    of_mean, of_own = np.outer(slopes[0], curvature) / 3, np.diag(slopes[0] * curvature)
    others = [found(of_mean), found(of_own)]
    np.testing.assert_allclose(found(slopes[0]), np.maximum(*others), rtol=1e-9)
    assert (np.argmax(others, axis=0) != np.argmax(others, axis=0)[0]).any()
    assert (found(slopes[0]) > found()).all()


@pytest.mark.parametrize(
    ("name", "arm", "line"),
    [
        ("sgld", Arm(0.01, N_DATA + 1), f"batch_size: {N_DATA + 1} is not allowed"),
        ("sgld", Arm(0.01, None), "batch_size: None is not allowed"),
        ("sghmc", Arm(0.01, BATCH), "n_leapfrog: None is not allowed"),
    ],
)
def test_arms_that_no_chain_can_have_are_refused(name, arm, line):
    """With more rows than there are the noise would have a negative variance."""
    directions = Directions(np.ones(2), np.full(2, 1e-3), N_DATA)
    for run in (
        lambda: stationary_variances(name, arm, directions),
        lambda: expected_run(name, arm, directions, 10),
        lambda: expected_errors(name, [arm], directions, [10]),
    ):
        with pytest.raises(InputError, match=line):
            run()


def test_unstable_arms_have_infinite_variances():
    directions = Directions(np.array([1.0, 100.0]), np.full(2, 1e-3), N_DATA)
    for name, arm in [
        ("sgld", Arm(0.021, BATCH)),
        ("sghmc", Arm(0.05, BATCH, 5)),
        ("sgnht", Arm(0.05, BATCH)),
    ]:
        assert np.isinf(stationary_variances(name, arm, directions)).all()
        assert np.isinf(expected_errors(name, [arm], directions, [100])).all()
        calm = arm.step_size / 20
        assert np.isfinite(stationary_variances(name, Arm(**{**arm, "step_size": calm}), directions)).all()
    # With noise of the Hessians only, a step multiplies E x^2 by (1 - h)^2 + h^2 F T. One direction of 100 may have all
    # of it: over all its mean is harmless.
    for times, settles in ((2.9, True), (3.1, False)):
        slope = times / FACTOR
        for slopes in (np.array([[slope]]), np.array([slope]), slope * np.eye(100)[7]):
            quiet = np.zeros(len(slopes))
            arm, directions = Arm(0.5, BATCH), Directions(quiet + 1, quiet, N_DATA, slopes)
            found = stationary_variances("sgld-cv", arm, directions)
            assert np.isfinite(found).all() == settles
            assert not settles or len(found) > 1 or found == pytest.approx(1 / (1 - 0.25 - 0.25 * times))


def test_moments_of_a_runs_variance_equal_the_quadratic_form():
    for n in (2, 3, 60):
        t = np.arange(1, n + 1)
        # 60 steps are also tested close to a random walk, where the sums would cancel.
        for phi in (-0.97, -0.4, 0.0, 0.3, 0.9, 0.99, *[1 - 1e-5] * (n == 60)):
            form = (np.eye(n) - 1 / n) / n @ (phi ** np.abs(t[:, None] - t) - float(phi) ** (t[:, None] + t))
            exact = np.trace(form), 2 * np.trace(form @ form)
            rtol = 1e-5 if n * (1 - phi**2) > 0.03 else 0.01
            np.testing.assert_allclose(np.ravel(variance_of_run(np.array([phi]), n)), exact, rtol=rtol)
    assert all(part == 0 for part in variance_of_run(np.array([0.5]), 1))
    assert sd_error(np.zeros(1), np.zeros(1), np.zeros(1)) == 1


def measured_error(draws, curvature):
    """xi^2 of each chain (n, W, d), its mean and standard error."""
    each = np.mean((draws.std(axis=0) * np.sqrt(curvature) - 1) ** 2, axis=1)
    return each.mean(), each.std(ddof=1) / np.sqrt(len(each))


def test_errors_of_sgld_agree_with_simulated_chains():
    """A biased, a fast, a slow and a frozen direction, each tested alone so that none hides another."""
    rng = np.random.default_rng(2)
    h, n_steps, n_chains = 1e-3, 800, 3_000
    curvature, noise = np.array([1.2e3, 200.0, 4.0, 1e-3]), np.array([40.0, 5.0, 1.0, 0.0])
    x, draws = np.zeros((n_chains, 4)), np.empty((n_steps, n_chains, 4), np.float32)
    for t in range(n_steps):
        spread = np.sqrt(2 * h + h**2 * FACTOR * noise)
        x = (1 - h * curvature) * x + spread * rng.standard_normal(x.shape)
        draws[t] = x
    for some in ([0], [1], [2], [3], [0, 1, 2, 3]):
        mean, error = measured_error(draws[:, :, some], curvature[some])
        directions = Directions(curvature[some], noise[some], N_DATA)
        (found,) = expected_errors("sgld", [Arm(h, BATCH)], directions, [n_steps])
        # The mean of a square root is approximated, with an error of up to two percent.
        assert abs(found**2 - mean) < 4 * error + 0.02 * mean


def chains_of_sgnht(h, curvature, noise, n_steps, n_chains=40):
    """Draws (n_steps, W, d) of chains from the mode with the friction 0.01, and their last thermostats."""
    rng, d = np.random.default_rng(4), len(curvature)
    x, v = np.zeros((n_chains, d)), np.sqrt(h) * rng.standard_normal((n_chains, d))
    alpha, draws = np.full((n_chains, 1), 0.01), np.empty((n_steps, n_chains, d), np.float32)
    for t in range(n_steps):
        gradient = -curvature * x + np.sqrt(FACTOR * noise) * rng.standard_normal(x.shape)
        v = v + h * gradient - alpha * v + np.sqrt(2 * 0.01 * h) * rng.standard_normal(x.shape)
        x = x + v
        alpha = alpha + (v**2).mean(axis=1, keepdims=True) - h
        draws[t] = x
    return draws, alpha


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_theory_knows_no_step_size_at_which_the_thermostat_disturbs_the_chain():
    """All directions of curvature one oscillate together, as in coordinates of a preconditioner: the worst case."""
    curvature, noise = np.ones(30), np.zeros(30)
    directions = Directions(curvature, noise, N_DATA)
    kept, hot, lost = (chains_of_sgnht(h, curvature, noise, 4_000)[0] for h in (0.03, 0.1, 0.4))
    mean, error = measured_error(kept, curvature)
    found = expected_errors("sgnht", [Arm(h, BATCH) for h in (0.03, 0.1, 0.4)], directions, [4_000] * 3)
    assert found[0] == pytest.approx(np.sqrt(mean), rel=0.1, abs=2 * error / np.sqrt(mean))
    assert hot.std(axis=0).mean() > 1.15
    assert not np.isfinite(lost[-1]).any()
    assert np.isinf(found[1:]).all()
    assert expected_errors("sgnht-shang", [Arm(0.18, BATCH)], directions, [4_000]) == np.inf


@pytest.mark.parametrize(("n_steps", "tolerance"), [(40, 0.25), (400, 0.15), (4_000, 0.1)])
def test_errors_of_sgnht_agree_with_simulated_chains(n_steps, tolerance):
    """While the thermostat settles, and later; with many directions, so that the thermostat has little noise."""
    h, d = 1e-4, 60
    curvature, noise = np.geomspace(10.0, 500.0, d), np.full(d, 1.0)
    draws, alpha = chains_of_sgnht(h, curvature, noise, n_steps)
    directions, arm = Directions(curvature, noise, N_DATA), Arm(h, BATCH)
    settled = settled_friction(arm, curvature, FACTOR * noise)
    # After a few 1 / alpha steps, the thermostat's increase gives the mean kinetic energy over its target.
    if n_steps > 100:
        warmth = 1 + (alpha.mean() - 0.01) / (n_steps * h)
        assert run_warmth(h, 0.01, settled, n_steps) == pytest.approx(warmth, rel=0.15)
    mean, error = measured_error(draws, curvature)
    (found,) = expected_errors("sgnht", [arm], directions, [n_steps])
    assert found == pytest.approx(np.sqrt(mean), rel=tolerance, abs=4 * error / np.sqrt(mean))


def test_a_run_of_no_steps_has_the_error_of_its_start():
    directions = Directions(np.ones(2), np.ones(2), N_DATA)
    for name in ("sgld", "sgld-cv", "sgnht"):
        assert list(expected_errors(name, [Arm(1e-3, BATCH)] * 2, directions, [0, 1])) == [1, 1]
    mean, variance = expected_run("sgld-cv", Arm(0.1, BATCH), directions, 10**6)
    np.testing.assert_allclose(mean, 1 / 0.95, rtol=1e-3)
    assert (variance < 1e-3).all()
