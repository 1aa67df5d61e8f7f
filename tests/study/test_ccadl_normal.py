"""Mean and precision of a normal: the exact posterior, autocorrelation times, and chains of the study's samplers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.signal import lfilter
from sgtune.study.ccadl.autocorrelation import autocovariance, batch_means_time, integrated_time
from sgtune.study.ccadl.normal_exact import NAMES, posterior_of

from sgtune.model.posterior import density_of, log_posterior, score
from sgtune.study.ccadl.normal import normal_data, normal_model, sample_normal, squared_bias
from sgtune.study.ground_truth.draws import arviz_module
from sgtune.study.pipeline.parts import Parts

DATA = np.random.default_rng(1).standard_normal(30) * 1.2 + 0.4
EXACT = posterior_of(DATA)


def joint(mu, gamma):
    """The unnormalised posterior density, from the definitions of the prior and the likelihood."""
    log_prior = 0.5 * np.log(gamma) - 0.5 * gamma * mu**2 - gamma
    return np.exp(log_prior + np.sum(0.5 * np.log(gamma) - 0.5 * gamma * (DATA - mu) ** 2))


@pytest.fixture(scope="module")
def marginals():
    """The two marginal densities by numerical integration of the joint one."""
    reach = 12 * EXACT.scale

    def of_gamma(gamma):
        return quad(lambda mu: joint(mu, gamma), EXACT.mean - reach, EXACT.mean + reach, epsabs=0)[0]

    def of_mu(mu):
        return quad(lambda gamma: joint(mu, gamma), 1e-9, EXACT.quantile("gamma", 1 - 1e-12), epsabs=0)[0]

    total = quad(of_gamma, 1e-9, EXACT.quantile("gamma", 1 - 1e-12), epsabs=0)[0]
    return {"mu": lambda value: of_mu(value) / total, "gamma": lambda value: of_gamma(value) / total}


@pytest.mark.parametrize("name", NAMES)
def test_exact_marginals_are_those_of_numerical_integration(marginals, name):
    edges = EXACT.edges(name, 8)
    assert np.allclose(np.diff(EXACT.cdf(name, edges[[0, -1]])), 0.999)
    densities = EXACT.density(name, edges)
    for low, high, density in zip(edges[:-1], edges[1:], densities, strict=True):
        mass = quad(marginals[name], low, high, epsabs=0, epsrel=1e-6)[0]
        assert density == pytest.approx(mass / (high - low), rel=1e-4)


@pytest.mark.parametrize(("name", "place"), [("mu", 0), ("gamma", 1)])
def test_exact_sds_are_those_of_the_density(name, place):
    edges = np.linspace(EXACT.quantile(name, 1e-9), EXACT.quantile(name, 1 - 1e-9), 20_001)
    middles, mass = (edges[1:] + edges[:-1]) / 2, np.diff(EXACT.cdf(name, edges))
    mean = np.sum(mass * middles)
    assert EXACT.sds[place] == pytest.approx(np.sqrt(np.sum(mass * (middles - mean) ** 2)), rel=1e-4)


def test_model_has_the_paper_gradients_and_is_even_in_gamma():
    model, data = normal_model(DATA), DATA.astype(np.float32)
    mu, gamma, n = 0.3, 0.8, len(data)
    gradient = np.asarray(score(density_of(model), jnp.array([mu, gamma]), model.data))
    paper = [
        (n + 1) * mu * gamma - gamma * np.sum(data),
        1 - (n + 1) / (2 * gamma) + mu**2 / 2 + np.sum((data - mu) ** 2) / 2,
    ]
    assert np.allclose(-gradient, paper, rtol=1e-4)
    mirrored = np.asarray(score(density_of(model), jnp.array([mu, -gamma]), model.data))
    assert np.allclose(mirrored, [gradient[0], -gradient[1]], rtol=1e-6)
    values = [log_posterior(density_of(model), jnp.array([mu, sign * gamma]), model.data) for sign in (1, -1)]
    assert values[0] == values[1]


def test_data_may_have_the_moments_of_their_law():
    data = normal_data(100, True, 3)
    assert np.allclose([data.mean(), data.var()], [0, 1], atol=1e-6)
    assert not np.allclose(normal_data(100, False, 3).var(), 1, atol=1e-3)


def autoregressive(r, n, seed):
    """A stationary chain x_t = r x_(t-1) + noise of variance 1."""
    noise = np.random.default_rng(seed).standard_normal(n)
    noise[1:] *= np.sqrt(1 - r**2)
    return lfilter([1.0], [1.0, -r], noise)


@pytest.mark.parametrize("r", [0.0, 0.5, 0.9])
def test_integrated_time_of_an_autoregressive_chain(r):
    times = [integrated_time(autoregressive(r, 100_000, seed)).time for seed in range(20)]
    exact, error = (1 + r) / (1 - r), np.std(times, ddof=1) / np.sqrt(len(times))
    # The sequence ends late on positive noise, with a bias of the order of the error of one estimate.
    assert abs(np.mean(times) - exact) < 4 * error + 0.02 * exact
    by_batches = [batch_means_time(autoregressive(r, 100_000, seed)) for seed in range(20)]
    # With batches of 1,000 draws, the edges of batches reduce the time by about tau / 1,000 of it.
    assert np.mean(by_batches) == pytest.approx(
        exact, abs=4 * exact * np.sqrt(2 / 100 / 20) + exact**2 / 1_000
    )


def test_autocovariances_are_those_of_arviz():
    chain = autoregressive(0.8, 4_001, 5)
    arviz = arviz_module()
    assert np.allclose(autocovariance(chain)[:500], arviz.autocov(chain)[:500], atol=1e-10)


def test_times_of_many_chains_are_those_of_arviz():
    """ArviZ halves a chain, and smooths the sequence to a monotone one, so that single chains differ. Means over 200
    chains: their standard errors allow a difference of 6%."""
    arviz = arviz_module()
    chains = [autoregressive(0.8, 4_001, seed) for seed in range(200)]
    ours = np.array([integrated_time(chain).time for chain in chains])
    theirs = np.array([len(chain) / float(arviz.ess(chain, method="mean")) for chain in chains])
    error = np.hypot(ours.std(ddof=1), theirs.std(ddof=1)) / np.sqrt(len(chains))
    assert error < 0.015 * theirs.mean()
    assert abs(ours.mean() - theirs.mean()) < 4 * error


def test_time_of_an_oscillating_chain_ends_at_the_first_zero():
    """A damped oscillation, poles at 0.98 exp(+-i 0.1): the sum to the first zero exceeds the sum over all lags."""
    chain = lfilter(
        [1.0], [1.0, -2 * 0.98 * np.cos(0.1), 0.98**2], np.random.default_rng(0).standard_normal(400_000)
    )
    found = integrated_time(chain[1_000:])
    assert 10 <= found.lags <= 24  # a quarter of the period of 63 steps, in pairs; damping makes it later
    assert found.time > 3 * batch_means_time(chain[1_000:])


@pytest.mark.parametrize("draws", [np.ones(100), np.full(100, np.nan), np.arange(3.0)])
def test_no_time_of_chains_that_do_not_move_or_are_not_finite(draws):
    assert np.isnan(integrated_time(draws).time)
    assert np.isnan(batch_means_time(draws))


def test_squared_bias_is_unbiased_and_knows_its_error():
    rng, bias = np.random.default_rng(2), 0.3 * np.sin(np.arange(50))
    found = [squared_bias(bias + rng.standard_normal((6, 50))) for _ in range(400)]
    values, errors = np.array([[one["value"], one["se"]] for one in found]).T
    spread = values.std(ddof=1)
    assert values.mean() == pytest.approx(np.mean(bias**2), abs=4 * spread / np.sqrt(len(values)))
    # The jackknife is conservative (Efron and Stein 1981): its expectation is the variance of one replicate fewer, at
    # most 6 / 4 of this variance, with second-order terms counted twice. The relative error of the sd itself is 4%.
    assert 0.9 * spread < np.sqrt(np.mean(errors**2)) < 1.1 * np.sqrt(2 * 6 / 4) * spread
    assert squared_bias(np.ones((1, 5))) == {"value": None, "se": None}


SETTINGS = {
    **{"step_sizes": [0.01], "frictions": [10.0], "n_data": 100, "standardised": True, "batch_size": 10},
    **{"steps": 4_000, "warmup": 500, "replicates": 4, "bins": 50, "samplers": ["ccadl"]},
}


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    said = []
    records = {
        method: sample_normal(method, SETTINGS, parts=Parts(folder / method, said.append), report=said.append)
        for method in ("sghmc", "ccadl")
    }
    return folder, records


@pytest.mark.parametrize("method", ["sghmc", "ccadl"])
def test_chains_are_about_the_exact_posterior(sampled, method):
    record = sampled[1][method]
    [cell] = record["cells"]
    assert record["sampler"] == {"sghmc": "sghmc-shang", "ccadl": "ccadl"}[method]
    for name in NAMES:
        runs = [run[name] for run in cell["replicates"]]
        means = np.array([run["mean_error"] for run in runs])
        # One chain with autocorrelation time of about 50 has 80 effective draws: the error of its mean is 0.11 sd.
        assert abs(means.mean()) < 4 * np.sqrt(60 / 4_000 / len(runs))
        assert 0.8 < np.mean([run["sd_ratio"] for run in runs]) < 1.2
        assert all(10 < run["time"] < 150 for run in runs)
        width = np.diff(record["edges"][name])
        assert np.sum(width * cell["density"][name]) == pytest.approx(0.999, abs=0.01)
        exact = np.sum(width * np.asarray(record["exact"][name]))
        assert exact == pytest.approx(0.999, abs=1e-9)


def test_a_job_that_was_killed_goes_on_with_its_next_replicate(sampled, monkeypatch):
    folder, records = sampled
    import sgtune.study.ccadl.normal as module

    made = []
    original = module._replicate

    def counted(*arguments):
        made.append(arguments[4])
        return original(*arguments)

    monkeypatch.setattr(module, "_replicate", counted)
    more = {**SETTINGS, "replicates": 5}
    longer = sample_normal("ccadl", more, parts=Parts(folder / "ccadl"))
    assert made == [4]
    for name in NAMES:
        before = [run[name]["time"] for run in records["ccadl"]["cells"][0]["replicates"]]
        assert [run[name]["time"] for run in longer["cells"][0]["replicates"]][:4] == before
    sample_normal("ccadl", {**SETTINGS, "steps": 200, "replicates": 1}, parts=Parts(folder / "ccadl"))
    assert made == [4, 0]


def test_steps_below_zero_are_counted_and_reflected():
    from sgtune.study.ccadl.normal import _of_chain

    edges = {name: EXACT.edges(name, 10) for name in NAMES}
    rng = np.random.default_rng(0)
    draws = np.column_stack([rng.standard_normal(400), rng.gamma(5, 0.2, 400)])
    signs = np.where(np.arange(400) // 100 % 2, -1, 1)
    whole, folded = (
        _of_chain(draws, EXACT, edges),
        _of_chain(draws * [[1, 0]] + np.outer(signs * draws[:, 1], [0, 1]), EXACT, edges),
    )
    assert (whole["crossings"], folded["crossings"]) == (0, 3)
    assert folded["gamma"]["time"] == whole["gamma"]["time"]
    assert np.array_equal(folded["gamma"]["density"], whole["gamma"]["density"])
    lost = _of_chain(np.full((400, 2), np.nan), EXACT, edges)
    assert lost == {"diverged": True}


def test_draws_start_at_the_posterior_mean_and_are_finite():
    model = normal_model(DATA)
    assert model.dimension == 2
    assert np.isfinite(np.asarray(model.init(jax.random.key(0)))).all()
