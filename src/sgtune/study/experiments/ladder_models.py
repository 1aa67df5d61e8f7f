"""Gaussian posteriors of any dimension with known mode, curvature and gradient noise, and no D x D matrix anywhere.

N rows y_j with the log-likelihood -(theta - y_j)' A (theta - y_j) / 2 and the prior N(0, I / p); A = Q diag(a) Q' with
an orthogonal Q. The posterior has its mode at 0, and the precision N a_i + p along the i-th column of Q. Rows are
y_j = Q diag(a)^(-1/2) z_j with z standardised over the rows, so the gradients A (y_j - theta) of the data have a mean
of 0 at the mode and exactly the variance a_i along direction i, for any theta: C ~ A, as in a well-specified model.

============== ================================================== =================================
kind           Q                                                  a
============== ================================================== =================================
axis           the identity                                       three decades, evenly on a log scale, up to 1
axis-narrow    the identity                                       a thousand times as much: sds of 0.001 to 0.03
rotated        random signs, then an orthonormal cosine transform the same
equicorrelated the Householder reflection of e_1 onto 1/sqrt(D)   of correlations of 0.9: 1, and one
                                                                  of 0.1 / (1 + 0.9 (D - 1))
============== ================================================== =================================

In a rotated Gaussian every parameter depends on every direction, so its marginal sds are nearly the same; a product of
a few reflections would hardly change the axes for a large D. The narrow kind is the same posterior in other units, with
step sizes scaled to match: only a judge that depends on units chooses another arm.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy.fft
from jaxtyping import Array, Float

from sgtune.mode.find import MapResult
from sgtune.model import Model, define_model
from sgtune.support.errors import check_choice, check_integer
from sgtune.support.randomness import named_seed

__all__ = ["KINDS", "Gaussian", "gaussian", "ladder_model"]

DECADES = 3.0
"""Between the largest and the smallest curvature."""

NARROWER = 1_000.0
"""The factor between the curvatures of the kinds ``axis-narrow`` and ``axis``."""

CORRELATION = 0.9
"""Of any two parameters of the kind ``equicorrelated``."""

PRIOR_SHARE = 1e-3
"""The prior's precision over the data's smallest precision of any direction: the prior is nearly flat."""

CHUNK = 500
"""Rows of Q that `Gaussian.marginal_variances` has at a time."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """The exact moments of a posterior of the ladder. Directions are the columns of Q, in the order of ``eigenvalues``.

    Attributes:
        eigenvalues: a_i of A: of a datum's curvature, and the variance of its gradient (module docstring).
        prior_precision: p.
        signs: of the kind ``rotated``: those of the parameters before the cosine transform.
    """

    kind: str
    n_data: int
    eigenvalues: Float[np.ndarray, " d"]
    prior_precision: float
    signs: Float[np.ndarray, " d"]

    @property
    def dimension(self) -> int:
        """D."""
        return len(self.eigenvalues)

    @property
    def precision(self) -> Float[np.ndarray, " d"]:
        """N a_i + p, of the posterior along each direction."""
        return self.n_data * self.eigenvalues + self.prior_precision

    @property
    def sd(self) -> Float[np.ndarray, " d"]:
        """Of the posterior along each direction."""
        return 1 / np.sqrt(self.precision)

    def along(self, rows: Float[np.ndarray, "*n d"]) -> Float[np.ndarray, "*n d"]:
        """Q' of each row, in float64: positions in the coordinates of the directions."""
        rows = np.asarray(rows, np.float64)
        if self.kind == "rotated":
            return scipy.fft.dct(self.signs * rows, norm="ortho")
        return _reflected(rows, np) if self.kind == "equicorrelated" else rows

    def across(self, rows: Float[np.ndarray, "*n d"]) -> Float[np.ndarray, "*n d"]:
        """Q of each row: back from `along`."""
        rows = np.asarray(rows, np.float64)
        if self.kind == "rotated":
            return self.signs * scipy.fft.idct(rows, norm="ortho")
        return self.along(rows)

    def marginal_variances(self, variances: Float[np.ndarray, "d k"]) -> Float[np.ndarray, "d k"]:
        """Of each parameter, sum over i of Q_ji^2 v_i, from k lists of ``variances`` along the directions.

        Time D^2 (log D + k); memory of 500 rows of Q.
        """
        if self.kind.startswith("axis"):
            return np.asarray(variances, np.float64)
        found = np.empty(np.shape(variances))
        for start in range(0, self.dimension, CHUNK):
            places = np.arange(start, min(start + CHUNK, self.dimension))
            units = np.zeros((len(places), self.dimension))
            units[np.arange(len(places)), places] = 1.0
            # Rows of Q: what its transpose makes of unit vectors.
            found[places] = self.along(units) ** 2 @ variances
        return found


def _reflected(rows, xp):
    """The Householder reflection that takes e_1 to 1/sqrt(D); its own inverse."""
    dimension = rows.shape[-1]
    root = np.sqrt(dimension)
    if dimension == 1:
        return rows
    # rows - 2 u (u . rows) with u along e_1 - 1/sqrt(D), of squared length 2 - 2/sqrt(D).
    product = rows[..., :1] - rows.sum(axis=-1, keepdims=True) / root
    away = product / (1 - 1 / root)
    first = xp.arange(dimension) == 0
    return rows - away * (first - 1 / root)


def _axis(dimension: int) -> Float[np.ndarray, " d"]:
    return np.logspace(-DECADES, 0.0, dimension) if dimension > 1 else np.ones(1)


def _equicorrelated(dimension: int) -> Float[np.ndarray, " d"]:
    eigenvalues = np.ones(dimension)
    eigenvalues[0] = (1 - CORRELATION) / (1 + CORRELATION * (dimension - 1))
    return eigenvalues


KINDS: dict[str, Callable[[int], np.ndarray]] = {
    "axis": _axis,
    "axis-narrow": lambda dimension: NARROWER * _axis(dimension),
    "rotated": _axis,
    "equicorrelated": _equicorrelated,
}
"""The eigenvalues of each, by D."""


def gaussian(kind: str, dimension: int, n_data: int, seed: int = 0) -> Gaussian:
    """The exact moments of a posterior of the ladder.

    Raises:
        InputError: there is no such kind, or a size is less than 1 (rows: 2).
    """
    check_choice("kind", kind, KINDS)
    check_integer("dimension", dimension, at_least=1)
    check_integer("n_data", n_data, at_least=2)
    eigenvalues = KINDS[kind](dimension)
    rng = np.random.default_rng(named_seed(seed, "signs of the ladder", dimension))
    return Gaussian(
        kind=kind,
        n_data=n_data,
        eigenvalues=eigenvalues,
        prior_precision=PRIOR_SHARE * n_data * float(eigenvalues.min()),
        signs=rng.choice([-1.0, 1.0], size=dimension),
    )


def ladder_model(kind: str, dimension: int, n_data: int = 1_000, seed: int = 0) -> Model:
    """A posterior of the ladder as a model; `gaussian` with the same arguments has its exact moments.

    Its data are the N rows A y_j in float32, 4 N D bytes. The log-likelihood omits terms without theta. Its mode is
    given and need not be found.

    Raises:
        InputError: as `gaussian`.
    """
    known = gaussian(kind, dimension, n_data, seed)
    rng = np.random.default_rng(named_seed(seed, "rows of the ladder", kind, dimension, n_data))
    rows = rng.standard_normal((n_data, dimension))
    rows -= rows.mean(axis=0)
    rows *= np.sqrt(known.eigenvalues) / rows.std(axis=0, ddof=1)
    model = define_model(
        f"{kind}-{dimension}",
        log_prior=partial(_log_prior, known.prior_precision),
        log_likelihood=partial(_log_likelihood, _in_jax(known), jnp.asarray(known.eigenvalues, jnp.float32)),
        data=known.across(rows).astype(np.float32),
        init=lambda key: jax.random.normal(key, (dimension,)),
        shuffle_seed=None,
    )
    model.found.mode = MapResult(
        position=jnp.zeros(dimension, jnp.float32),
        gradient_norm=0.0,
        distance=0.0,
        converged=True,
        steps=0,
        negative_log_posterior=0.0,
    )
    return model


def _in_jax(known: Gaussian) -> Callable[[Array], Array]:
    """`Gaussian.along` of one position, for the model's functions."""
    if known.kind == "rotated":
        signs = jnp.asarray(known.signs, jnp.float32)
        return lambda position: jax.scipy.fft.dct(signs * position, norm="ortho")
    if known.kind == "equicorrelated":
        return lambda position: _reflected(position, jnp)
    return lambda position: position


def _log_prior(precision: float, position: Float[Array, " d"]) -> Float[Array, ""]:
    return -0.5 * precision * jnp.sum(position**2)


def _log_likelihood(
    along: Callable, eigenvalues: Float[Array, " d"], position: Float[Array, " d"], batch: Float[Array, "n d"]
) -> Float[Array, " n"]:
    """theta' A y_j - theta' A theta / 2: the square of y_j is left out."""
    return batch @ position - 0.5 * jnp.sum(eigenvalues * along(position) ** 2)
