"""The logistic regression of the CCAdL study: its curves, its long chains, and the values computed from them."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from sgtune.metrics import xi_rel
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.ccadl.ellipses import ellipse_of, pooled
from sgtune.study.ccadl.logistic import (
    COORDINATES,
    Truth,
    late_means,
    mean_log_likelihoods,
    sample_curves,
    sample_draws,
)
from sgtune.study.ccadl.logistic_table import passes_to, pooled_sd_ratio
from sgtune.study.pipeline.parts import Parts
from sgtune.study.posteriors import classification

SETTINGS = {
    **{"step_sizes": [0.002, 0.005], "frictions": [1.0, 10.0], "batch_size": 50},
    "curves": {"passes": 3, "points": 6, "replicates": 2},
    "draws": {"friction": 10.0, "steps": 2_500, "warmup": 50, "replicates": 2},
}


@pytest.fixture(scope="module")
def model():
    """Eight features of simulated sevens and nines, which overlap so that the weights are not far from 0."""
    arrays = classification.simulate("mnist79", 500)
    parts = {name: arrays[name][:, :8] if "inputs" in name else arrays[name] for name in arrays}
    test_data = {"inputs": parts["test_inputs"], "targets": parts["test_labels"]}
    return classification.mnist79(parts["train_inputs"], parts["train_labels"], test_data=test_data)


def test_log_likelihoods_are_those_of_the_test_data(model):
    positions = np.random.default_rng(0).standard_normal((3, 8))
    x, y = model.test_data["inputs"].astype(float), model.test_data["targets"]
    naive = [np.mean(np.log(np.where(y == 1, expit(x @ w), 1 - expit(x @ w)))) for w in positions]
    assert np.allclose(mean_log_likelihoods(model, positions), naive)
    positions[1, 2] = np.nan
    found = mean_log_likelihoods(model, positions)
    assert np.isnan(found[1])
    assert np.allclose(found[[0, 2]], np.array(naive)[[0, 2]])


def test_late_means_are_of_the_last_half():
    draws, steps = np.random.default_rng(1).standard_normal((9, 2)), np.array([1, 4, 9])
    naive = [draws[0:1].mean(axis=0), draws[2:4].mean(axis=0), draws[4:9].mean(axis=0)]
    assert np.allclose(late_means(draws, steps), naive)


def test_curves_are_those_of_the_chains(model, tmp_path):
    record = sample_curves("sgnht", model, SETTINGS, seed=3, parts=Parts(tmp_path))
    assert np.allclose(record["passes"], [0.5, 1, 1.5, 2, 2.5, 3])
    assert len(record["cells"]) == 4
    cell = record["cells"][3]
    assert (cell["step_size"], cell["friction"]) == (0.005, 10.0)
    from sgtune.support.randomness import named_key

    arms = [Arm(step_size=h, batch_size=50, friction=a) for h in (0.002, 0.005) for a in (1.0, 10.0)]
    start = model.init(named_key(3, "ccadl", "logistic", 1))
    chains = Lockstep.at_mode(
        model, "sgnht-shang", arms, position=start, seed=3, replicate="ccadl curves 1"
    ).advance(30)
    values = mean_log_likelihoods(model, late_means(chains[:, 3], np.array([5, 10, 15, 20, 25, 30])))
    assert np.allclose(cell["replicates"][1]["log_likelihoods"], values)
    assert cell["replicates"][0]["log_likelihoods"][0] != values[0]


def test_long_chains_have_the_moments_of_their_draws(model, tmp_path):
    truth = Truth(np.zeros(8), np.full(8, 2.0), np.diag(np.full(8, 4.0)))
    record = sample_draws("ccadl", model, truth, SETTINGS, seed=3, parts=Parts(tmp_path))
    assert (record["steps"], record["sampler"]) == (2_500, "ccadl")
    assert [cell["friction"] for cell in record["cells"]] == [10.0, 10.0]
    from sgtune.mode.find import map_position

    arms = [Arm(step_size=h, batch_size=50, friction=10.0) for h in (0.002, 0.005)]
    chain = Lockstep.at_mode(
        model, "ccadl", arms, position=jnp.asarray(map_position(model)), seed=3, replicate="ccadl draws 0"
    )
    chain.advance(50)
    draws = chain.advance(2_500)[:, 1].astype(float)
    run = record["cells"][1]["replicates"][0]
    assert np.allclose(run["mean"], draws.mean(axis=0)[list(COORDINATES)], atol=1e-5)
    covariance = np.cov(draws.T)
    assert np.allclose(run["covariance"], covariance[np.ix_(COORDINATES, COORDINATES)], rtol=1e-4)
    assert run["xi_rel"] == pytest.approx(xi_rel(draws.std(axis=0, ddof=1), truth.sd), rel=1e-4)
    assert run["mean_error"] == pytest.approx(np.sqrt(np.mean((draws.mean(axis=0) / 2) ** 2)), rel=1e-4)
    assert run["xi_white"] == pytest.approx(run["xi_rel"], rel=0.5)


def test_sghmc_is_lazy_in_long_chains_and_says_what_is_clipped(model, tmp_path):
    truth = Truth(np.zeros(8), np.ones(8), None)
    # The noise of 50 of 500 data needs A from 1 to 10 at this h.
    own = {**SETTINGS, "step_sizes": [0.005], "frictions": [0.1, 100.0]}
    curves = sample_curves("sghmc", model, own, parts=Parts(tmp_path / "curves"))
    clipped, whole = (cell["replicates"][0]["statistics"] for cell in curves["cells"])
    assert clipped["clipped_share"] == 1
    assert clipped["friction_needed"] > 0.1
    assert whole == {"clipped_share": 0, "friction_needed": 100.0}
    for friction, share in ((0.1, 1.0), (100.0, 0.0)):
        long = {**own, "draws": {**own["draws"], "friction": friction, "steps": 200}}
        record = sample_draws("sghmc", model, truth, long, parts=Parts(tmp_path / f"draws {friction}"))
        assert record["sampler"] == "sghmc-shang-lazy"
        [cell] = record["cells"]
        for run in cell["replicates"]:
            assert run["statistics"]["clipped_share"] == share
            assert (run["statistics"]["friction_needed"] > friction) == (share > 0)
            assert run.get("xi_white") is None


def test_a_chain_that_diverges_is_said_to(model, tmp_path):
    unstable = {**SETTINGS, "step_sizes": [50.0]}
    curves = sample_curves("sgnht", model, unstable, parts=Parts(tmp_path / "curves"))
    assert np.isnan(curves["cells"][0]["replicates"][0]["log_likelihoods"][-1])
    truth = Truth(np.zeros(8), np.ones(8), None)
    draws = sample_draws("sgnht", model, truth, unstable, parts=Parts(tmp_path / "draws"))
    assert draws["cells"][0]["replicates"][0] == {"replicate": 0, "diverged": True, "statistics": {}}


@pytest.mark.parametrize(
    ("values", "reached"),
    [
        ([-3, -1, -1, -1], 2),
        ([-3, -1, -3, -1], 4),
        ([-1, -1, -1, -3], None),
        ([-3, -1, None, -1], 4),
        ([-3, -1, -1, float("nan")], None),
    ],
)
def test_passes_are_counted_until_a_curve_stays_near(values, reached):
    assert passes_to([1, 2, 3, 4], values, -1.5) == reached


def test_ellipses_hold_95_percent_of_a_gaussian():
    mean, covariance = np.array([1.0, -2.0]), np.array([[2.0, 0.9], [0.9, 0.5]])
    outline = ellipse_of(mean, covariance)
    inverse = np.linalg.inv(covariance)
    bounds = np.einsum("ni,ij,nj->n", outline - mean, inverse, outline - mean)
    assert np.allclose(bounds, bounds[0])
    draws = np.random.default_rng(0).multivariate_normal(mean, covariance, 100_000)
    inside = np.einsum("ni,ij,nj->n", draws - mean, inverse, draws - mean) < bounds[0]
    assert inside.mean() == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 100_000))


def test_chains_are_pooled_as_if_they_were_one():
    apart = np.array([[[0, 1]], [[2, 0]], [[1, 1]]])
    chains = apart + np.random.default_rng(0).standard_normal((3, 5_000, 2))
    runs = [{"diverged": False, "mean": c.mean(axis=0), "covariance": np.cov(c.T)} for c in chains]
    mean, covariance = pooled(runs)
    assert np.allclose(mean, chains.reshape(-1, 2).mean(axis=0))
    assert np.allclose(covariance, np.cov(chains.reshape(-1, 2).T), rtol=1e-3)
    assert np.array_equal(pooled([*runs, {"diverged": True}])[1], covariance)
    assert pooled([{"diverged": True}]) is None


def test_the_sd_of_pooled_chains_has_the_spread_of_its_jackknife():
    """4 chains that do not mix: their means have variance 1, and so have the draws within a chain.

    The relative error of the sd of 400 ratios is 3.5%. The jackknife's variance is biased upwards (Efron and Stein
    1981); the test allows up to twice the variance.
    """
    rng, draws = np.random.default_rng(3), 200
    found = []
    for _ in range(400):
        chains = rng.standard_normal((4, 1, 1)) + rng.standard_normal((4, draws, 1))
        runs = [
            {"diverged": False, "mean": c.mean(axis=0), "covariance": np.cov(c.T).reshape(1, 1)}
            for c in chains
        ]
        found.append(pooled_sd_ratio(runs, 0, 2.0))
    values, errors = np.array(found).T
    one = np.concatenate(list(chains))[:, 0]
    assert values[-1] == pytest.approx(one.std() / 2, rel=0.01)
    assert 0.85 * values.std() < np.sqrt(np.mean(errors**2)) < 1.1 * np.sqrt(2) * values.std()
    assert pooled_sd_ratio(runs[:2], 0, 2.0)[1] is None
    assert pooled_sd_ratio([], 0, 2.0) == (None, None)
