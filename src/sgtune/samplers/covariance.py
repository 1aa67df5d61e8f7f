"""The covariance of a gradient estimator's noise, estimated from the minibatch that gave the gradient.

The gradients of single data are taken a chunk at a time: n x D numbers are never in memory at once.

Samplers use its running average over steps (Shang et al. 2015, Eq. 18). With Sigma_t the estimate from the minibatch of
step t = 1, 2, ..., the average is

    S_t = (1 - kappa_t) S_{t-1} + kappa_t Sigma_t,      kappa_t = max(1 / t, kappa)

so that kappa = 0 is the paper's kappa_t = 1 / t, the plain mean of all steps. With kappa > 0, kappa_t is constant once
t > 1 / kappa: the average then has a memory of 1 / kappa steps and follows the chain. Before, it is the plain mean, so
no initial value has any weight. With kappa = 1, S_t is the estimate of the current minibatch alone.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree

from sgtune.model.posterior import Density, sum_over_tiles
from sgtune.model.rows import number_of_rows
from sgtune.support.errors import InputError, check_choice, check_integer

__all__ = [
    "FORMS",
    "LARGEST_FULL_DIMENSION",
    "Covariance",
    "RunningCovariance",
    "check_covariance",
    "no_covariance",
    "no_steps",
    "noise_covariance",
    "times",
    "updated",
]

Covariance = Float[Array, " D"] | Float[Array, "D D"]

FORMS = ("diagonal", "full")
"""The forms of an estimate: D variances, or the D x D matrix."""

LARGEST_FULL_DIMENSION = 5_000
"""Above this D a full matrix is refused: its memory and time grow with D^2, for every chain."""

CHUNK_FLOATS = {"diagonal": 2**16, "full": 2**20}
"""A chunk has as many per-datum gradients as fit into this many float32 numbers, at least one."""
# Measured on 2 cores: sums of squares are fastest while a chunk stays in the cache, 3 to 5 times as fast at D = 52,580
# and 79,510 as with 2^20; a product of matrices, at D = 1,000, is twice as fast with 2^20 as with 2^16.


def check_covariance(form: str, batch_size: int, n_data: int, dimension: int) -> str:
    """``form`` if that covariance can be estimated from ``batch_size`` of ``n_data`` rows, for D = ``dimension``.

    Raises:
        InputError: ``form`` is unknown, or "full" for D > `LARGEST_FULL_DIMENSION`; ``batch_size`` is not an integer
            from 1 to N, or is 1 < N: one gradient has no covariance.
    """
    check_choice("covariance", form, FORMS)
    check_integer("batch_size", batch_size, at_least=1, at_most=n_data)
    if batch_size == 1 < n_data:
        raise InputError("batch_size: 1 is not allowed; the covariance of gradients needs 2 or more data")
    if form == "full" and dimension > LARGEST_FULL_DIMENSION:
        raise InputError(
            f"covariance: 'full' is not allowed for D = {dimension}, only up to D = {LARGEST_FULL_DIMENSION}: "
            f"each chain would hold several matrices of {4 * dimension**2 / 2**30:.3g} GiB, and each of its steps "
            f"would take n D^2 = {batch_size * dimension**2:.2g} multiplications; use 'diagonal'"
        )
    return form


def no_covariance(form: str, dimension: int) -> Covariance:
    """Zeros: all N data give the exact gradient."""
    return jnp.zeros((dimension, dimension) if form == "full" else (dimension,), jnp.float32)


def noise_covariance(
    density: Density,
    position: PyTree,
    batch: PyTree,
    n_data: int,
    sums: PyTree,
    form: str,
    centre: PyTree | None = None,
) -> Covariance:
    """Estimated covariance of (N / n) * (sum of g over a minibatch): (N^2 / n) (1 - n / N) V.

    This is Sigma of the CCAdL paper (Shang et al. 2015, Eq. 17), for rows drawn without replacement: the paper's
    N^2 / n is for draws with replacement. V is 1 / (n - 1) times the sum over the batch of
    (g_i - mean g) (g_i - mean g)' (its Eq. 19), with g_i the gradient of the log-likelihood of datum i. It is the
    covariance of the whole gradient estimate, because the gradient of the prior is exact. Its unit is the unit of a
    squared gradient of log pi. The sampler computes the paper's moving average over steps (Eq. 18).

    V estimates S, the population covariance (divisor N - 1) of the N gradients g at this position. Where rows are
    drawn singly, the expectation of V over minibatches is S. The expectation of the result is then exactly the
    covariance of the gradient estimate, for every n from 2 to N - 1.

    Where a minibatch consists of blocks of neighbouring rows (`sgtune.samplers.minibatch`), the data must be in random
    order: V then has the expectation S over this order, too; for one given order the variances differ by about
    sqrt(2 / M), relatively, with M blocks in the data. Neighbours that are alike make the result far too small.

    Args:
        batch: the n rows, n < N.
        n_data: N.
        sums: the sum of g over the batch, in the structure of a position, which the caller has computed for the
            gradient. The mean is subtracted before squaring: float32 would lose a covariance that is small compared
            with the mean's square.
        form: "diagonal" or "full".
        centre: of control variates: g is then the difference of a datum's gradients at ``position`` and here.

    Returns:
        Variances ``(D,)``, or the matrix ``(D, D)``, in the order of `ravel_pytree`. Memory: a few times `CHUNK_FLOATS`
        numbers for the gradients of a chunk, and a few arrays of the result's size; under `jax.vmap` this much for each
        chain.
    """
    n = number_of_rows(batch)
    mean = ravel_pytree(sums)[0] / n

    def log_likelihood(position, row):
        return density.log_likelihood(position, jax.tree.map(lambda leaf: leaf[None], row))[0]

    def deviation(row):
        gradient = jax.grad(log_likelihood)(position, row)
        if centre is not None:
            gradient = jax.tree.map(jnp.subtract, gradient, jax.grad(log_likelihood)(centre, row))
        return ravel_pytree(gradient)[0] - mean

    def products(rows):
        deviations = jax.vmap(deviation)(rows)
        if form == "diagonal":
            return jnp.sum(deviations**2, axis=0)
        # A GPU's default for float32 keeps three digits.
        return jnp.dot(deviations.T, deviations, precision="highest")

    squares = sum_over_tiles(products, batch, tile=max(1, CHUNK_FLOATS[form] // mean.size))
    return n_data * (n_data - n) / n * (squares / (n - 1))


class RunningCovariance(NamedTuple):
    """S_t, ``(D,)`` or ``(D, D)`` in the order of `ravel_pytree`, and t."""

    covariance: Covariance
    n_steps: Int[Array, ""]


def no_steps(form: str, position: PyTree) -> RunningCovariance:
    """The average before the first step: zeros; ``form`` is "diagonal" or "full"."""
    return RunningCovariance(no_covariance(form, ravel_pytree(position)[0].size), jnp.int32(0))


def updated(
    before: RunningCovariance, covariance: Covariance, kappa: float | Float[Array, ""]
) -> RunningCovariance:
    """The average after one more step, whose estimate is ``covariance``."""
    n_steps = before.n_steps + 1
    weight = jnp.maximum(1 / n_steps, kappa)
    # A difference, not two products: in float32 the mean of equal numbers then stays exactly that number.
    new = before.covariance + weight * (covariance - before.covariance)
    # After the first step the average is the minibatch's estimate to the last bit.
    return RunningCovariance(jnp.where(weight == 1, covariance, new), n_steps)


def times(covariance: Covariance, vector: Float[Array, " D"]) -> Float[Array, " D"]:
    """The matrix times the vector; a diagonal matrix is given by its D numbers."""
    if covariance.ndim == 1:
        return covariance * vector
    # A GPU's default precision for float32 products has three digits.
    return jnp.dot(covariance, vector, precision="highest")
