"""Posteriors like those that users bring: raw columns, heavy tails, a hierarchy, outliers, scikit-learn's data sets.

Each is as its columns come; nobody has tuned the software to it. A function gives log_prior, log_likelihood, data and
init; `case_model` makes the model.
"""

import jax
import jax.numpy as jnp
import numpy as np

from sgtune.model import Model, define_model


def raw_columns():
    """Linear regression with known noise on a count, a rate and an amount of money. The posterior is Gaussian, and its
    sds span four decades."""
    rng = np.random.default_rng(1)
    n = 4_000
    count, rate = rng.poisson(3.0, n), 0.2 + 0.01 * rng.normal(size=n)
    money = 20 + 5 * rng.normal(size=n) + 2 * count
    x = np.c_[np.ones(n), count, rate, money]
    y = x @ np.array([1.0, 0.3, 5.0, 0.1]) + rng.normal(size=n)
    return _normal_prior(100.0), _squares, {"x": x, "y": y}, lambda key: jnp.zeros(4)


def heavy_tails():
    """Student-t regression on raw columns. The largest curvature is above 10^8: no step size of the paper's grid is
    stable. Log scales leave the posterior in the direction in which the mean virial is negative."""
    rng = np.random.default_rng(2)
    n = 20_000
    x = np.c_[np.ones(n), rng.gamma(2.0, 20.0, n) - 20, rng.uniform(100, 3_000, n), rng.integers(0, 24, n)]
    y = x @ np.array([-5.0, 1.0, -0.002, 0.3]) + 12 * rng.standard_t(3, size=n)

    def log_likelihood(p, b):
        nu, z = jnp.exp(p[5]), (b["y"] - b["x"] @ p[:4]) * jnp.exp(-p[4])
        gamma = jax.scipy.special.gammaln
        constant = gamma((nu + 1) / 2) - gamma(nu / 2) - 0.5 * jnp.log(nu) - p[4]
        return constant - (nu + 1) / 2 * jnp.log1p(z * z / nu)

    def log_prior(p):
        return -0.5 * jnp.sum((p[:4] / 100) ** 2) - 0.5 * ((p[4] - 2) / 3) ** 2 - 0.5 * (p[5] - 1.5) ** 2

    return log_prior, log_likelihood, {"x": x, "y": y}, lambda key: jnp.array([0, 0, 0, 0, 2.5, 1.5])


def groups():
    """Non-centred random intercepts, 60 groups of 50: the joint mode has log_tau many posterior sds too large, and the
    search for the mode says "converged" all the same."""
    rng = np.random.default_rng(3)
    groups, size, tau = 60, 50, 0.3
    g = np.repeat(np.arange(groups), size)
    x = rng.normal(size=groups * size)
    y = 0.5 * x + tau * rng.normal(size=groups)[g] + 0.8 * rng.normal(size=groups * size)

    def log_likelihood(p, b):
        mean = p["b"][0] + p["b"][1] * b["x"] + jnp.exp(p["log_tau"]) * p["u"][b["g"]]
        return -0.5 * ((b["y"] - mean) * jnp.exp(-p["log_sigma"])) ** 2 - p["log_sigma"]

    def log_prior(p):
        scales = sum(p[name] - 0.5 * jnp.exp(2 * p[name]) for name in ("log_tau", "log_sigma"))
        return scales - jnp.sum(p["b"] ** 2) / 50 - 0.5 * jnp.sum(p["u"] ** 2)

    def init(key):
        return {
            "b": jnp.zeros(2),
            "log_tau": -jnp.ones(()),
            "log_sigma": jnp.zeros(()),
            "u": jnp.zeros(groups),
        }

    return log_prior, log_likelihood, {"x": x, "y": y, "g": g}, init


def leverage():
    """Linear regression with five rows of huge leverage among 50,000: the noise of minibatch gradients is theirs, and a
    random subset of the rows misses them."""
    rng = np.random.default_rng(4)
    n = 50_000
    x = np.c_[np.ones(n), rng.normal(size=(n, 3))]
    x[rng.choice(n, 5, replace=False), 1] *= 150
    y = x @ np.array([0.0, 1.0, -1.0, 0.5]) + rng.normal(size=n)
    return _normal_prior(1.0), _squares, {"x": x, "y": y}, lambda key: jnp.zeros(4)


def diabetes():
    """Linear regression with unknown noise on scikit-learn's diabetes data: 442 rows, ten raw columns."""
    x, y = _bundled("diabetes", scaled=False)

    def log_likelihood(p, b):
        return -0.5 * ((b["y"] - b["x"] @ p[:-1]) * jnp.exp(-p[-1])) ** 2 - p[-1]

    def log_prior(p):
        return -0.5 * jnp.sum((p[:-1] / 100) ** 2) - 0.5 * ((p[-1] - 4) / 2) ** 2

    return log_prior, log_likelihood, {"x": x, "y": y}, lambda key: jnp.zeros(12).at[-1].set(4.0)


def cancer():
    """Logistic regression on scikit-learn's breast cancer data: 569 rows, 30 raw columns, classes that nearly
    separate."""
    x, y = _bundled("breast_cancer")

    def log_likelihood(p, b):
        logit = b["x"] @ p
        return b["y"] * logit - jnp.logaddexp(0.0, logit)

    return _normal_prior(5.0), log_likelihood, {"x": x, "y": y}, lambda key: jnp.zeros(31)


def digits():
    """Softmax regression on scikit-learn's digits: 1,797 images of 64 pixels, 650 parameters."""
    x, y = _bundled("digits")

    def log_likelihood(p, b):
        logits = b["x"] @ p
        return jnp.take_along_axis(jax.nn.log_softmax(logits), b["y"][:, None], axis=1)[:, 0]

    data = {"x": x / 16, "y": y.astype(np.int32)}
    return _normal_prior(1.0), log_likelihood, data, lambda key: jnp.zeros((65, 10))


def counts():
    """Poisson regression of claims on raw columns, a year among them, with the log of an exposure."""
    rng = np.random.default_rng(5)
    n = 10_000
    year, age = rng.integers(2005, 2025, n), rng.uniform(18, 90, n)
    power, exposure = rng.gamma(4.0, 30.0, n), rng.uniform(0.05, 1.0, n)
    rate = np.exp(-1.0 + 0.02 * (year - 2015) - 0.01 * age + 0.003 * power) * exposure
    data = {
        "x": np.c_[np.ones(n), year, age, power],
        "log_exposure": np.log(exposure),
        "y": rng.poisson(rate),
    }

    def log_likelihood(p, b):
        log_rate = b["x"] @ p + b["log_exposure"]
        return b["y"] * log_rate - jnp.exp(log_rate)

    return _normal_prior(10.0), log_likelihood, data, lambda key: jnp.zeros(4)


def _normal_prior(sd: float):
    return lambda p: -0.5 * jnp.sum((p / sd) ** 2)


def _squares(p, b):
    return -0.5 * (b["y"] - b["x"] @ p) ** 2


def _bundled(name: str, **options: bool) -> tuple[np.ndarray, np.ndarray]:
    """Columns, with an intercept, and targets of a data set that comes with scikit-learn."""
    from sklearn import datasets

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True, **options)
    return np.c_[np.ones(len(x)), x], y


CASES = {
    case.__name__: case
    for case in (raw_columns, heavy_tails, groups, leverage, diabetes, cancer, digits, counts)
}


def case_model(name: str) -> Model:
    """The posterior ``name`` of `CASES` as a model."""
    log_prior, log_likelihood, data, init = CASES[name]()
    return define_model(name, log_prior=log_prior, log_likelihood=log_likelihood, data=data, init=init)
