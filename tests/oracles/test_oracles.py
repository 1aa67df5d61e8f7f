"""Our formulas beside those of packages that others wrote, each where it is installed (the extra ``oracles``).

What one of them says is a fact about our code that no one here could get wrong twice in the same way. ArviZ's effective
draws and R-hat are beside our own in tests/metrics.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgtune
from sgtune.samplers.minibatch import draw_minibatch
from sgtune.sampling.lockstep import Lockstep
from sgtune.stein import ksd
from sgtune.stein.fssd import fssd_at

pytestmark = pytest.mark.oracles

RNG = np.random.default_rng(0)
FACTOR = np.array([[1.5, 0.0, 0.0], [-0.8, 0.7, 0.0], [0.3, 0.4, 2.0]])
DRAWS = RNG.standard_normal((150, 3)) @ FACTOR.T + 0.3
SCORES = -DRAWS @ np.linalg.inv(FACTOR @ FACTOR.T) + 0.2 * np.sin(DRAWS[:, ::-1])


OF_SAMPLE = np.linalg.cholesky(np.cov(DRAWS, rowvar=False))


@pytest.mark.parametrize(
    ("scale", "draws", "scores", "metric", "factor"),
    [
        ("identity", DRAWS, SCORES, "id", 1.0),
        # Its metric changes the kernel, and our scale also the scores: a factor of the sd.
        *((np.full(3, sd), DRAWS, SCORES, str(sd**2), sd) for sd in (0.2, 3.0)),
        # The metric of the sample's covariance, here of draws that we have brought to covariance I.
        (OF_SAMPLE, np.linalg.solve(OF_SAMPLE, DRAWS.T).T, SCORES @ OF_SAMPLE, "smpcov", 1.0),
    ],
)
def test_ksd_is_that_of_stein_thinning(scale, draws, scores, metric, factor):
    """The last of its sequence is that of all draws."""
    kernel = pytest.importorskip("stein_thinning.kernel").make_imq(draws, metric)
    their_ksd = pytest.importorskip("stein_thinning.stein").ksd
    theirs = their_ksd(lambda i, j: kernel(draws[i], draws[j], scores[i], scores[j]), len(draws))[-1]
    np.testing.assert_allclose(ksd(DRAWS, SCORES, scale), factor * theirs, rtol=1e-6)


def test_fssd_is_that_of_hyppo():
    """From the V-statistic of its features; its own statistic has no diagonal, so that it may be negative."""
    theirs = pytest.importorskip("hyppo.kgof.fssd")
    locations = RNG.standard_normal((4, 3))

    class Imq:
        def eval(self, x, y):
            return (1 + ((x[:, None] - y) ** 2).sum(axis=2)) ** -0.5

        def gradX_y(self, x, y):
            return -(x - y) * self.eval(x, y[None]) ** 3

    class Density:
        def grad_log(self, x):
            return SCORES

    features = theirs.FSSD(Density(), Imq(), locations, null_sim=None).feature_tensor(DRAWS)
    squared = theirs.ustat_h1_mean_variance(features, return_variance=False, use_unbiased=False)
    np.testing.assert_allclose(fssd_at(DRAWS, SCORES, locations), np.sqrt(squared), rtol=1e-6)


ROWS = {
    "x": RNG.standard_normal((40, 3)).astype(np.float32),
    "y": RNG.integers(0, 2, 40).astype(np.float32),
}


def log_prior(w):
    return -0.5 * w @ w


def log_likelihood_of_one(w, row):
    return -jnp.log1p(jnp.exp((1 - 2 * row["y"]) * (row["x"] @ w)))


@pytest.mark.parametrize("ending", ["", "-cv"])
def test_sgld_is_that_of_blackjax_step_for_step(ending):
    """Its kernel and its gradient estimators, from the rows and the noise keys of our chain."""
    theirs = pytest.importorskip("blackjax")
    from blackjax.sgmcmc import gradients

    model = sgtune.from_log_densities(log_prior, log_likelihood_of_one, ROWS, lambda key: jnp.zeros(3))
    centre, position = jnp.array([0.1, -0.2, 0.3]), jnp.array([1.0, 0.5, -1.0])
    arm = sgtune.Arm(0.02, 8)
    ours = Lockstep(model, f"sgld{ending}", [arm], position=position, centre=centre)
    (noise_key,), minibatch_key = ours.keys, ours.minibatch_key
    draws = ours.advance(30)[:, 0]

    gradient = gradients.grad_estimator(log_prior, log_likelihood_of_one, model.n_data)
    if ending:
        gradient = gradients.control_variates(gradient, centre, model.data)
    step = jax.jit(theirs.sgld(gradient).step)
    for t, ours in enumerate(draws):
        rows = draw_minibatch(jax.random.fold_in(minibatch_key, t), model.data, arm.batch_size)
        position = step(jax.random.fold_in(noise_key, t), position, rows, arm.step_size)
        np.testing.assert_allclose(ours, position, rtol=1e-4, atol=1e-5)


def test_a_dataset_of_grain_gives_the_draws_of_the_same_rows_in_memory():
    grain = pytest.importorskip("grain")
    dataset = grain.MapDataset.range(len(ROWS["x"])).map(lambda i: jax.tree.map(lambda leaf: leaf[i], ROWS))

    def draws_of(rows):
        model = sgtune.from_log_densities(log_prior, log_likelihood_of_one, rows, lambda key: jnp.zeros(3))
        arm = {"step_size": 0.02, "batch_size": 8}
        return sgtune.sample(model, "sgld-cv", **arm, budget=sgtune.Budget(steps=200), seed=1).draws

    np.testing.assert_array_equal(draws_of(sgtune.RowSource(dataset)), draws_of(ROWS))
