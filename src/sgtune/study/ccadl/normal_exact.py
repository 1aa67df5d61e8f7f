"""The posterior of a normal's mean and precision under the conjugate prior, in closed form (Sect. 4.1).

x_i ~ N(mu, 1/gamma), mu | gamma ~ N(0, 1/gamma), gamma ~ Gamma(1, 1). Given N data the posterior is Normal-Gamma,
mu | gamma ~ N(mu_N, 1/(kappa_N gamma)), gamma ~ Gamma(alpha_N, beta_N). So gamma is Gamma, and mu is a Student t with
2 alpha_N degrees of freedom, located at mu_N, of scale sqrt(beta_N / (alpha_N kappa_N)). (The paper prints N(mu | 0,
gamma) for the prior; its gradients and its posterior are for a precision gamma.)
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import gammainc, gammaincinv, stdtr, stdtrit

__all__ = ["NAMES", "NormalGamma", "posterior_of"]

NAMES = ("mu", "gamma")
"""The two parameters, in the order of a position."""


class NormalGamma(NamedTuple):
    """The posterior's parameters, by the names of the paper."""

    mean: float
    kappa: float
    alpha: float
    beta: float

    @property
    def scale(self) -> float:
        """Of mu's Student t."""
        return float(np.sqrt(self.beta / (self.alpha * self.kappa)))

    @property
    def sds(self) -> tuple[float, float]:
        """Of mu, sqrt(beta / (kappa (alpha - 1))), and of gamma, sqrt(alpha) / beta."""
        return (
            float(np.sqrt(self.beta / (self.kappa * (self.alpha - 1)))),
            float(np.sqrt(self.alpha) / self.beta),
        )

    def cdf(self, name: str, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """P(parameter <= value) of each value."""
        if name == "mu":
            return stdtr(2 * self.alpha, (values - self.mean) / self.scale)
        return gammainc(self.alpha, self.beta * np.maximum(values, 0.0))

    def quantile(self, name: str, probability: float) -> float:
        """The value below which a parameter is with this probability."""
        if name == "mu":
            return float(self.mean + self.scale * stdtrit(2 * self.alpha, probability))
        return float(gammaincinv(self.alpha, probability) / self.beta)

    def edges(self, name: str, n_bins: int, mass: float = 0.999) -> Float[np.ndarray, " m"]:
        """``n_bins`` bins of one width over a parameter's central ``mass``."""
        tail = (1 - mass) / 2
        return np.linspace(self.quantile(name, tail), self.quantile(name, 1 - tail), n_bins + 1)

    def density(self, name: str, edges: Float[np.ndarray, " m"]) -> Float[np.ndarray, " n"]:
        """The mean density within each bin: what a histogram of exact draws tends to."""
        return np.diff(self.cdf(name, edges)) / np.diff(edges)


def posterior_of(data: Float[np.ndarray, " n"]) -> NormalGamma:
    """The posterior given ``data``: the paper's mu_N, kappa_N, alpha_N and beta_N."""
    data = np.asarray(data, np.float64)
    n, mean = len(data), float(np.mean(data))
    beta = 1 + np.sum((data - mean) ** 2) / 2 + n * mean**2 / (2 * (1 + n))
    return NormalGamma(n * mean / (n + 1), 1.0 + n, 1 + n / 2, float(beta))
