"""The spread of a run of an AR(1) process that starts at its mean: exact moments, and the expected error of its sd.

x_0 = 0, x_t = phi x_(t-1) + noise, stationary variance S. The variance of the draws x_1, ..., x_n is

    v = (1/n) sum x_t^2 - ((1/n) sum x_t)^2 = x'Mx,    M = (I - 11'/n) / n,

and with the covariance S R of the draws, R_tu = phi^|t-u| - phi^(t+u), E v = S tr(MR) and Var v = 2 S^2 tr(MRMR),
which are geometric sums.
"""

import numpy as np
from jaxtyping import Float

__all__ = ["oscillation_of_run", "sd_error", "variance_of_run"]

FROZEN = 0.03
"""Where n (1 - phi^2) is smaller, float64 loses the sums to rounding; the run is a random walk up to this share."""


def variance_of_run(
    phi: Float[np.ndarray, " d"], n: int
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """E v / S and Var v / S^2 of the variance v of n draws, for |phi| < 1.

    A random walk with steps of variance q has E v = q (n^2 - 1) / (6 n), with Var v / (E v)^2 = 4/5 (many draws). One
    that alternates in sign has E v = q (n + 1) / 2, with Var v / (E v)^2 = 4/3. These are the variances of a run about
    its mean and about zero.
    """
    if n < 2:
        return np.zeros_like(phi), np.zeros_like(phi)
    rest, both = 1 - phi, (1 - phi) * (1 + phi)
    is_frozen = n * both < FROZEN
    # Kept away from 0 / 0 where the limit is taken anyway.
    rest, both = np.where(is_frozen, 1.0, rest), np.where(is_frozen, 1.0, both)
    r, c = phi**2, 1 + phi
    to_n, r_to_n = phi**n, r**n
    g1 = phi * (1 - to_n) / rest
    g2 = r * (1 - r_to_n) / both
    a = c - phi * to_n
    trace = n - g2
    total = (n * c - (a + 1) * g1) / rest
    squares = (n * c**2 + (a**2 + 1) * g2 - 2 * c * (a + 1) * g1 + 2 * n * a * phi * to_n) / rest**2
    weighted = r * (1 - (n + 1) * r_to_n + n * r * r_to_n) / both**2
    trace_of_square = (n * (1 + r) - 2 * g2) / both - 2 * (2 * weighted - g2) + g2**2
    mean = trace / n - total / n**2
    variance = 2 / n**2 * (trace_of_square - 2 / n * squares + (total / n) ** 2)
    step = (1 - phi) * (1 + phi)
    walk = np.where(phi > 0, step * (n**2 - 1) / (6 * n), step * (n + 1) / 2)
    mean = np.where(is_frozen, walk, mean)
    variance = np.where(is_frozen, walk**2 * np.where(phi > 0, 4 / 5, 4 / 3), variance)
    return np.maximum(mean, 0.0), np.maximum(variance, 0.0)


def oscillation_of_run(frequency: Float[np.ndarray, " d"], n: int) -> Float[np.ndarray, " d"]:
    """Variance of sin(w t) about its mean over a run of n steps, over the 1/2 of a long run.

    The share of its spread that an oscillator which starts at its mean has reached, before friction matters:
    1 - sin(2 u) / (2 u) - 2 ((1 - cos u) / u)^2 with u = w n.
    """
    u = np.maximum(frequency * n, 1e-3)
    return np.maximum(1 - np.sin(2 * u) / (2 * u) - 2 * ((1 - np.cos(u)) / u) ** 2, 0.0)


def sd_error(
    mean: Float[np.ndarray, " d"], variance: Float[np.ndarray, " d"], phi: Float[np.ndarray, " d"]
) -> Float[np.ndarray, " d"]:
    """E[(sqrt(v) - 1)^2] of the variance v of a run, from E v and Var v.

    E sqrt(v) depends on more than two moments of v. With k = (E v)^2 / Var v it is sqrt(E v) times

        Gamma(k + 1/2) / (Gamma(k) sqrt(k))       for a gamma distribution, which is exact for independent draws,
        exp(k) sqrt(2 k / pi) K_0(k)              for an inverse Gaussian, which is close if phi is near 1.

    Their third cumulants are 2 and 3 times Var(v)^2 / E v. For a long run of an AR(1) process the factor is
    2 (1 + 4 r + r^2) / (1 + r)^2, r = phi^2, by the integral of its spectral density's third power. The two values are
    mixed so that the third cumulant agrees.
    """
    from scipy.special import gammaln, k0e  # slow to import, and needed by one tuner

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shape = mean**2 / variance
        few = np.exp(gammaln(shape + 0.5) - gammaln(shape)) / np.sqrt(shape)
        slow = np.sqrt(2 * shape / np.pi) * k0e(shape)
        r = phi**2
        root = few + 4 * r / (1 + r) ** 2 * (slow - few)
        # Both gammas are huge, and their ratio is known: 1 - 1/(8 k).
        root = np.where(shape < 1e6, root, 1 - 1 / (8 * shape))
        error = mean - 2 * np.sqrt(mean) * root + 1
    return np.where(mean > 0, np.maximum(error, 0.0), 1.0)
