"""Our formulas beside those of packages that others wrote, each where it is installed (the extra ``oracles``).

What one of them says is a fact about our code that no one here could get wrong twice in the same way. ArviZ's effective
draws and R-hat are beside our own in tests/metrics, BlackJAX's samplers in tests/bridges.
"""

import numpy as np
import pytest

from sgtune.metrics.calibration import ece, mce
from sgtune.stein import ksd
from sgtune.stein.fssd import fssd_at

pytestmark = pytest.mark.oracles

RNG = np.random.default_rng(0)
FACTOR = np.array([[1.5, 0.0, 0.0], [-0.8, 0.7, 0.0], [0.3, 0.4, 2.0]])
DRAWS = RNG.standard_normal((150, 3)) @ FACTOR.T + 0.3
SCORES = -DRAWS @ np.linalg.inv(FACTOR @ FACTOR.T) + 0.2 * np.sin(DRAWS[:, ::-1])


@pytest.mark.parametrize("scale", [1.0, 0.2, 3.0, "covariance"])
def test_ksd_is_that_of_stein_thinning(scale):
    """Its metric changes the kernel, and our scale also the scores: a factor of it. Its ``smpcov`` is the metric of the
    sample's covariance, here of draws that we have brought to covariance I."""
    make_imq = pytest.importorskip("stein_thinning.kernel").make_imq
    their_ksd = pytest.importorskip("stein_thinning.stein").ksd
    draws, scores, metric, own, factor = DRAWS, SCORES, "smpcov", None, 1.0
    if scale == "covariance":
        own = np.linalg.cholesky(np.cov(DRAWS, rowvar=False))
        draws, scores = np.linalg.solve(own, DRAWS.T).T, SCORES @ own
    else:
        metric, own, factor = str(scale**2), np.full(3, scale), scale
    kernel = make_imq(draws, metric)
    # The last of a sequence, that of all draws.
    of_all = their_ksd(lambda i, j: kernel(draws[i], draws[j], scores[i], scores[j]), len(draws))[-1]
    np.testing.assert_allclose(ksd(DRAWS, SCORES, own), factor * of_all, rtol=1e-6)


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


@pytest.mark.parametrize("classes", [2, 5])
def test_calibration_errors_are_those_of_torchmetrics(classes):
    theirs = pytest.importorskip("torchmetrics.functional.classification").multiclass_calibration_error
    torch = pytest.importorskip("torch")
    probabilities = RNG.dirichlet(np.full(classes, 0.5), size=2_000).astype(np.float32)
    targets = np.where(RNG.random(2_000) < 0.6, probabilities.argmax(axis=1), RNG.integers(0, classes, 2_000))
    for ours, norm in ((ece, "l1"), (mce, "max")):
        wanted = theirs(
            torch.tensor(probabilities), torch.tensor(targets), num_classes=classes, n_bins=15, norm=norm
        )
        np.testing.assert_allclose(ours(probabilities, targets), float(wanted), rtol=1e-4)
