"""Mean and precision of a normal: the exact posterior, autocorrelation times, and chains of the study's samplers."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid
from scipy.signal import lfilter
from stein_forms import autoregressive

from sgtune.model.posterior import density_of, log_posterior, score
from sgtune.study.ccadl import normal
from sgtune.study.pipeline.parts import Parts

DATA = np.random.default_rng(1).standard_normal(30) * 1.2 + 0.4
EXACT = normal.posterior_of(DATA)


def test_exact_marginals_are_those_of_the_joint_density():
    """The joint density is from the definitions of prior and likelihood; the trapezoidal rule converges fast."""
    axes = [
        np.linspace(*EXACT["mu"].interval(1 - 1e-12), 801),
        np.linspace(1e-9, EXACT["gamma"].ppf(1 - 1e-12), 801),
    ]
    mu, gamma = np.meshgrid(*axes, indexing="ij")
    squares = np.sum((DATA[:, None, None] - mu) ** 2, axis=0) + mu**2
    joint = np.exp(0.5 * (len(DATA) + 1) * np.log(gamma) - 0.5 * gamma * squares - gamma)
    for place, (own, axis) in enumerate(zip(EXACT.values(), axes, strict=True)):
        below = cumulative_trapezoid(joint.sum(axis=1 - place), axis, initial=0)
        assert np.allclose(own.cdf(axis), below / below[-1], atol=1e-4)
        edges = normal.bins_of(own, 8)
        assert np.sum(normal.density_in(own, edges) * np.diff(edges)) == pytest.approx(0.999)


def test_model_has_the_paper_gradients_and_is_even_in_gamma():
    model, data = normal.normal_model(DATA), DATA.astype(np.float32)
    mu, gamma, n = 0.3, 0.8, len(data)
    density, (here, mirrored) = density_of(model), (jnp.array([mu, sign * gamma]) for sign in (1, -1))
    gradient = np.asarray(score(density, here, model.data))
    of_gamma = 1 - (n + 1) / (2 * gamma) + mu**2 / 2 + np.sum((data - mu) ** 2) / 2
    assert np.allclose(-gradient, [(n + 1) * mu * gamma - gamma * np.sum(data), of_gamma], rtol=1e-4)
    assert np.allclose(score(density, mirrored, model.data), gradient * [1, -1], rtol=1e-6)
    assert log_posterior(density, here, model.data) == log_posterior(density, mirrored, model.data)


@pytest.mark.parametrize("r", [0.0, 0.5, 0.9])
def test_times_of_autoregressive_chains(r):
    """x_t = r x_(t-1) + noise has the time (1 + r) / (1 - r)."""
    chains = autoregressive(np.random.default_rng(0), 100_000, 20, r).T
    times = [normal.integrated_time(chain)[0] for chain in chains]
    exact, error = (1 + r) / (1 - r), np.std(times, ddof=1) / np.sqrt(len(times))
    # The sequence ends late on positive noise, with a bias of the order of the error of one estimate.
    assert abs(np.mean(times) - exact) < 4 * error + 0.02 * exact
    # With batches of 1,000 draws, the edges of batches reduce the time by about tau / 1,000 of it.
    tolerance = 4 * exact * np.sqrt(2 / 100 / 20) + exact**2 / 1_000
    assert np.mean([normal.batch_means_time(chain) for chain in chains]) == pytest.approx(
        exact, abs=tolerance
    )


def test_time_of_an_oscillating_chain_ends_at_the_first_zero():
    """A damped oscillation, poles at 0.98 exp(+-i 0.1): the sum to the first zero exceeds the sum over all lags."""
    noise = np.random.default_rng(0).standard_normal(400_000)
    chain = lfilter([1.0], [1.0, -2 * 0.98 * np.cos(0.1), 0.98**2], noise)
    time, lags = normal.integrated_time(chain[1_000:])
    assert 10 <= lags <= 24  # a quarter of the period of 63 steps, in pairs; damping makes it later
    assert time > 3 * normal.batch_means_time(chain[1_000:])


def test_no_time_of_chains_that_do_not_move_or_are_not_finite():
    for draws in (np.ones(100), np.full(100, np.nan), np.arange(3.0)):
        assert np.isnan(normal.integrated_time(draws)[0])
        assert np.isnan(normal.batch_means_time(draws))
    # Nor have data the moments of their law, unless asked.
    moments = [
        (data.mean(), data.var()) for data in (normal.normal_data(100, own, 3) for own in (True, False))
    ]
    assert np.allclose(moments[0], [0, 1], atol=1e-6)
    assert not np.allclose(moments[1], [0, 1], atol=1e-3)


def test_squared_bias_is_unbiased_and_its_error_is_the_jackknife():
    rng, bias = np.random.default_rng(2), 0.3 * np.sin(np.arange(50))
    runs = bias + rng.standard_normal((400, 6, 50))
    values = np.array([normal.squared_bias(errors)["value"] for errors in runs])
    assert values.mean() == pytest.approx(np.mean(bias**2), abs=4 * values.std(ddof=1) / np.sqrt(len(values)))
    left = [normal.squared_bias(np.delete(runs[0], i, axis=0))["value"] for i in range(6)]
    assert normal.squared_bias(runs[0])["se"] == pytest.approx(np.sqrt(5 * np.var(left)), rel=1e-9)
    assert normal.squared_bias(np.ones((1, 5))) == {"value": None, "se": None}
    assert normal.squared_bias(np.ones((2, 5))) == {"value": 1.0, "se": None}


SETTINGS = {
    **{"step_sizes": [0.01], "frictions": [10.0], "n_data": 100, "standardised": True, "batch_size": 10},
    **{"steps": 4_000, "warmup": 500, "replicates": 4, "bins": 50, "samplers": ["ccadl"]},
}


@pytest.mark.parametrize(("method", "sampler"), [("sghmc", "sghmc-shang"), ("ccadl", "ccadl")])
def test_chains_are_about_the_exact_posterior(method, sampler):
    record = normal.sample_normal(method, SETTINGS, seed=0, parts=Parts())
    [cell] = record["cells"]
    assert record["sampler"] == sampler
    assert len({run["mu"]["time"] for run in cell["replicates"]}) == 4
    for name in normal.NAMES:
        runs = [run[name] for run in cell["replicates"]]
        means = np.array([run["mean_error"] for run in runs])
        # One chain with autocorrelation time of about 50 has 80 effective draws: the error of its mean is 0.11 sd.
        assert abs(means.mean()) < 4 * np.sqrt(60 / 4_000 / len(runs))
        assert 0.8 < np.mean([run["sd_ratio"] for run in runs]) < 1.2
        assert all(10 < run["time"] < 150 for run in runs)
        width = np.diff(record["edges"][name])
        assert np.sum(width * cell["density"][name]) == pytest.approx(0.999, abs=0.01)


def test_steps_below_zero_are_counted_and_reflected():
    edges = {name: normal.bins_of(EXACT[name], 10) for name in normal.NAMES}
    rng = np.random.default_rng(0)
    draws = np.column_stack([rng.standard_normal(400), rng.gamma(5, 0.2, 400)])
    signs = np.where(np.arange(400) // 100 % 2, -1, 1)
    whole = normal._of_chain(draws, EXACT, edges)
    folded = normal._of_chain(draws * np.column_stack([np.ones(400), signs]), EXACT, edges)
    assert (whole["crossings"], folded["crossings"]) == (0, 3)
    assert folded["gamma"]["time"] == whole["gamma"]["time"]
    assert np.array_equal(folded["gamma"]["density"], whole["gamma"]["density"])
    assert normal._of_chain(np.full((400, 2), np.nan), EXACT, edges) == {"diverged": True}
