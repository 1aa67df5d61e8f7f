"""Small posteriors like those that users bring: raw columns, heavy tails, a hierarchy, outliers.

Each function gives a model, which is made once, and its exact mean and covariance, or None.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from sgtune.model import Model, define_model


def regression(name: str, x, y, prior_sd=1.0, **options) -> tuple[Model, tuple]:
    """Linear regression with noise N(0, 1): an exactly Gaussian posterior."""
    precision = x.T @ x + np.eye(x.shape[1]) / prior_sd**2
    model = define_model(
        name,
        log_prior=lambda p: -0.5 * jnp.sum((p / prior_sd) ** 2),
        log_likelihood=lambda p, b: -0.5 * (b["y"] - b["x"] @ p) ** 2,
        data={"x": x.astype("f"), "y": y.astype("f")},
        init=lambda key: jnp.zeros(x.shape[1]),
        **options,
    )
    return model, (np.linalg.solve(precision, x.T @ y), np.linalg.inv(precision))


@cache
def raw_columns():
    """Linear regression with known noise on columns as they come: a count, a rate, an amount of money. The posterior is
    Gaussian, and its sds span four decades."""
    rng = np.random.default_rng(1)
    n = 4_000
    count, rate = rng.poisson(3.0, n), 0.2 + 0.01 * rng.normal(size=n)
    money = 20 + 5 * rng.normal(size=n) + 2 * count  # thousands
    x = np.c_[np.ones(n), count, rate, money]
    y = x @ np.array([1.0, 0.3, 5.0, 0.1]) + rng.normal(size=n)
    return regression("raw_columns", x, y, prior_sd=100.0)


@cache
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

    return define_model(
        "heavy_tails",
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        data={"x": x.astype("f"), "y": y.astype("f")},
        init=lambda key: jnp.zeros(6).at[4].set(2.5).at[5].set(1.5),
    ), None


@cache
def groups():
    """Non-centred random intercepts, 60 groups of 50: the joint mode has log_tau many posterior sds too large.

    The search for the mode says "converged"; starts, control variates, judge and theory are all centred there at first.
    The exact moments are by quadrature (`moments_of_groups`)."""
    rng = np.random.default_rng(3)
    groups, size, tau = 60, 50, 0.3
    g = np.repeat(np.arange(groups), size)
    x = rng.normal(size=groups * size)
    y = 0.5 * x + tau * rng.normal(size=groups)[g] + 0.8 * rng.normal(size=groups * size)

    def log_likelihood(p, b):
        mean = p["b"][0] + p["b"][1] * b["x"] + jnp.exp(p["log_tau"]) * p["u"][b["g"]]
        return -0.5 * ((b["y"] - mean) * jnp.exp(-p["log_sigma"])) ** 2 - p["log_sigma"]

    def log_prior(p):
        return (
            -jnp.sum(p["b"] ** 2) / 50
            - 0.5 * jnp.exp(2 * p["log_tau"])
            + p["log_tau"]
            - 0.5 * jnp.exp(2 * p["log_sigma"])
            + p["log_sigma"]
            - 0.5 * jnp.sum(p["u"] ** 2)
        )

    zero = jnp.zeros(())
    return define_model(
        "groups",
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        data={"x": x.astype("f"), "y": y.astype("f"), "g": g.astype(np.int32)},
        init=lambda key: {"b": jnp.zeros(2), "log_tau": zero - 1, "log_sigma": zero, "u": jnp.zeros(groups)},
    ), None


@cache
def leverage():
    """Linear regression with five rows of huge leverage among 50,000: the noise of minibatch gradients is theirs.

    A random subset of the rows misses them."""
    rng = np.random.default_rng(4)
    n = 50_000
    x = np.c_[np.ones(n), rng.normal(size=(n, 3))]
    x[rng.choice(n, 5, replace=False), 1] *= 150
    y = x @ np.array([0.0, 1.0, -1.0, 0.5]) + rng.normal(size=n)
    return regression("leverage", x, y)


def moments_of_groups():
    """Exact mean and covariance of `groups`, flat (b, log_sigma, log_tau, u): given both scales the rest is Gaussian,
    and the scales' marginal density is summed over a grid."""
    data = groups()[0].data
    x, y, g = (data[name].astype(np.float64) for name in ("x", "y", "g"))
    n_groups = int(g.max()) + 1
    z = np.eye(n_groups)[g.astype(int)]
    columns = np.c_[np.ones(len(x)), x, z]
    gram, cross, square = columns.T @ columns, columns.T @ y, y @ y
    prior = np.r_[np.full(2, 1 / 25), np.ones(n_groups)]
    points, weights = [], []
    for log_tau in np.linspace(-2.0, -0.4, 41):
        for log_sigma in np.linspace(-0.3, -0.14, 21):
            scale = np.r_[np.ones(2), np.full(n_groups, np.exp(log_tau))]
            precision = np.diag(prior) + scale[:, None] * gram * scale * np.exp(-2 * log_sigma)
            linear = scale * cross * np.exp(-2 * log_sigma)
            mean = np.linalg.solve(precision, linear)
            density = (
                0.5 * linear @ mean
                - 0.5 * np.linalg.slogdet(precision)[1]
                - 0.5 * square * np.exp(-2 * log_sigma)
                - len(y) * log_sigma
                - 0.5 * np.exp(2 * log_tau)
                + log_tau
                - 0.5 * np.exp(2 * log_sigma)
                + log_sigma
            )
            points.append((np.r_[mean[:2], log_sigma, log_tau, mean[2:]], np.linalg.inv(precision)))
            weights.append(density)
    weights = np.exp(np.array(weights) - max(weights))
    weights /= weights.sum()
    means = np.array([mean for mean, _ in points])
    centre = weights @ means
    covariance = (means - centre).T @ (weights[:, None] * (means - centre))
    others = np.r_[0, 1, 4 : 4 + n_groups]
    covariance[np.ix_(others, others)] += np.tensordot(weights, np.array([each for _, each in points]), 1)
    return centre, covariance
