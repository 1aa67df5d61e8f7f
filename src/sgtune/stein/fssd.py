"""Finite-set Stein discrepancy (paper Sect. 2.2.2, Eq. 4; Jitkrittum et al. 2017)."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from sgtune.stein.kernel import Draws, Scale, draw_matrices, imq, squared_distances
from sgtune.support.errors import InputError, check_integer
from sgtune.support.machine import full_precision
from sgtune.support.randomness import LARGEST_SEED, named_key

__all__ = ["fssd", "fssd_at", "optimise_locations"]

COLUMNS = 2048
MANY_DIMENSIONS = 200
# For a chain that stays at the MAP, all Gaussian locations are at this point, where g is zero and its norm has no
# gradient: without a perturbation Adam stays there too, and the frozen chain has FSSD zero. The size of the
# perturbation hardly matters, because Adam's steps do not depend on the size of the gradient.
NUDGE = 1e-4


def fssd(
    positions: PyTree,
    scores: PyTree,
    scale: Scale = "identity",
    seed: int = 0,
    *,
    n_draws: int | None = None,
    n_locations: int = 10,
    n_steps: int = 50,
) -> float:
    """FSSD between the empirical distribution of the draws and the posterior whose scores these are (Eq. 4).

    The locations are optimised on the even draws (0, 2, 4, ...) by `optimise_locations`, and the value is computed
    from the odd draws (`fssd_at`), so that it is not inflated by the optimisation. Neighbours in a chain are not
    independent, so this holds less well for a chain that mixes slowly. Fewer than four draws are not split: they
    serve for both.

    FSSD is less sensitive than KSD: with 500 draws in ten dimensions it detects a shift or a spread that is too
    small, but not a spread three times too large.

    The cost is linear in n; see `optimise_locations` for compilation. The same seed and draws give the same
    value bit for bit on the same machine.

    Args:
        positions: (n, D) array, or a pytree whose leaves share a leading axis n.
        scores: gradients of the log posterior at the positions, of the same structure and shapes.
        scale: as in `sgtune.stein.ksd`.
        seed: of the locations; every call derives its key from it, so the order of calls does not matter.
        n_draws: not used: the FSSD is computed for the given draws alone (compare `sgtune.stein.ksd`).
        n_locations: J, the number of locations.
        n_steps: Adam's steps; 0 leaves the locations as drawn.

    Returns:
        The discrepancy, >= 0; infinity if a position or score is not finite.

    Raises:
        InputError: shapes that differ, no draws, one-dimensional input, or an argument that is not allowed.
    """
    positions, scores = draw_matrices(positions, scores)
    even, odd = (slice(0, None, 2), slice(1, None, 2)) if len(positions) >= 4 else (slice(None), slice(None))
    locations = optimise_locations(positions[even], scores[even], scale, seed, n_locations, n_steps)
    return fssd_at(positions[odd], scores[odd], locations, scale)


def fssd_at(positions: PyTree, scores: PyTree, locations: ArrayLike, scale: Scale = "identity") -> float:
    """Eq. (4) at given locations, in float64: the root of the mean of g_i(v_j)^2 over i <= D, j <= J, where

        g(v) = mean over the draws of [score k(x, v) + grad_x k(x, v)],   k(x, v) = (1 + |x - v|^2)^(-1/2).

    Memory besides the inputs is bounded: only a tile of columns is in float64, unless ``scale`` is a (D, D) factor.

    Args:
        positions: (n, D) array, or a pytree whose leaves share a leading axis n.
        scores: gradients of the log posterior at the positions, of the same structure and shapes.
        locations: (J, D), in the model's own coordinates, like the positions; ``scale`` is applied to both.
        scale: as in `sgtune.stein.ksd`.

    Returns:
        The discrepancy, >= 0; infinity if a position, score or location is not finite.

    Raises:
        InputError: shapes that differ, no draws or locations, one-dimensional input; ``scale`` not allowed.
    """
    positions, scores = draw_matrices(positions, scores)
    locations = np.asarray(locations, np.float64)
    n, dimension = positions.shape
    if locations.ndim != 2 or locations.shape[0] == 0 or locations.shape[1] != dimension:
        raise InputError(
            f"locations: shape {locations.shape} is not allowed; it must be (J >= 1, {dimension})"
        )
    draws = Draws.read(positions, scores, scale)
    if draws is None or not np.isfinite(locations).all():
        return float("inf")
    with np.errstate(over="ignore", invalid="ignore"):
        points = draws.to_coordinates(locations)
        norms, products = np.zeros(n), np.zeros((n, len(points)))
        for tile, x, _ in draws.tiles(slice(None), COLUMNS):
            norms += np.einsum("nc,nc->n", x, x)
            products += x @ points[:, tile].T
        k1, k3, _ = imq(squared_distances(norms, np.einsum("jc,jc->j", points, points), products))
        total = 0.0
        for tile, x, s in draws.tiles(slice(None), COLUMNS):
            witness = k1.T @ s - (k3.T @ x - k3.sum(axis=0)[:, None] * points[:, tile])
            total += np.vdot(witness, witness)
        value = float(np.sqrt(total / points.size) / n)
    return value if np.isfinite(value) else float("inf")


def optimise_locations(
    positions: PyTree,
    scores: PyTree,
    scale: Scale = "identity",
    seed: int = 0,
    n_locations: int = 10,
    n_steps: int = 50,
) -> Float[np.ndarray, "j d"]:
    """Locations that make the FSSD of these draws large, in the model's own coordinates (Sect. 2.2.2).

    They start as draws of the Gaussian fitted to the draws, computed as mean + z'(centred draws) / sqrt(n) with n
    standard normals z: this has exactly the fitted covariance and needs no D x D matrix. Adam then maximises the
    FSSD, and the best locations on its way are kept, so the result is not below the start. Its steps are about a
    tenth of sqrt(1 + E|x - v|^2), the distance over which the kernel changes. The optimisation is in float32.

    The program is compiled once per D, J, n_steps and power of two >= max(n, 32), or >= max(n, 8) in more than
    200 dimensions, where the time of a step is proportional to the number of points. Draws are padded to this number
    with points of weight zero.

    Args:
        positions, scores, scale: as of `fssd_at`.
        seed: of the locations at the start.
        n_locations: J.
        n_steps: of Adam; 0: the locations are those at the start.

    Returns:
        (J, D) in float64; not finite if a position or score is not, or if they overflow float32.

    Raises:
        InputError: as `fssd`.
    """
    check_integer("seed", seed, at_least=0, at_most=LARGEST_SEED)
    check_integer("n_locations", n_locations, at_least=1)
    check_integer("n_steps", n_steps, at_least=0)
    positions, scores = draw_matrices(positions, scores)
    n, dimension = positions.shape
    draws = Draws.read(positions, scores, scale)
    if draws is None:
        return np.full((n_locations, dimension), np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        ((_, x, s),) = draws.tiles(slice(None), dimension)
        # FSSD is linear in (score, kernel gradient): for float32 both are scaled so that no score exceeds one.
        unit = 1.0 / max(1.0, np.abs(s).max())
        step = 0.1 * np.sqrt((1.0 + 2.0 * np.vdot(x, x) / n) / dimension)
        padded = max(32 if dimension <= MANY_DIMENSIONS else 8, 1 << (n - 1).bit_length())
        points = _climb(
            named_key(seed, "fssd"),
            _pad(x, padded),
            _pad(s * unit, padded),
            _pad(np.full((n, 1), 1.0 / n), padded)[:, 0],
            np.float32(unit),
            np.float32(step),
            n_locations=n_locations,
            n_steps=n_steps,
        )
        return draws.from_coordinates(np.asarray(points, np.float64))


def _pad(array: Float[np.ndarray, "n d"], n: int) -> Float[np.ndarray, "p d"]:
    padded = np.zeros((n, array.shape[1]), np.float32)
    padded[: len(array)] = array
    return padded


@partial(jax.jit, static_argnames=("n_locations", "n_steps"))
@full_precision
def _climb(
    key: PRNGKeyArray,
    positions: Float[Array, "p d"],
    scores: Float[Array, "p d"],
    weights: Float[Array, " p"],
    unit: Float[Array, ""],
    step: Float[Array, ""],
    *,
    n_locations: int,
    n_steps: int,
) -> Float[Array, "j d"]:
    """The locations with the highest FSSD on Adam's way up; centred positions, weights that sum to one."""
    import optax  # slow to import, and no other discrepancy needs it

    fit_key, nudge_key = jax.random.split(key)
    normals = jax.random.normal(fit_key, (n_locations, len(positions)))
    start = normals @ (jnp.sqrt(weights)[:, None] * positions)
    start += NUDGE * jax.random.normal(nudge_key, start.shape)
    slope = jax.value_and_grad(partial(_weighted_fssd, positions, scores, weights, unit))
    # Gradients per coordinate shrink as 1 / (J D): in high dimension the default eps would be larger than they are.
    optimiser = optax.adam(step, eps=1e-12)

    def climb(carry, _):
        points, state, best, best_value = carry
        value, gradient = slope(points)
        is_better = value > best_value
        best, best_value = jnp.where(is_better, points, best), jnp.where(is_better, value, best_value)
        updates, state = optimiser.update(-gradient, state)
        return (optax.apply_updates(points, updates), state, best, best_value), None

    carry = (start, optimiser.init(start), start, jnp.float32(0.0))
    (points, _, best, best_value), _ = jax.lax.scan(climb, carry, length=n_steps)
    return jnp.where(_weighted_fssd(positions, scores, weights, unit, points) > best_value, points, best)


def _weighted_fssd(
    positions: Float[Array, "p d"],
    scores: Float[Array, "p d"],
    weights: Float[Array, " p"],
    unit: Float[Array, ""],
    points: Float[Array, "j d"],
) -> Float[Array, ""]:
    """``unit`` times Eq. (4) at ``points``, for weighted draws; the caller has multiplied the scores by ``unit``."""
    products = positions @ points.T
    squares = jnp.sum(positions**2, axis=1)[:, None] + jnp.sum(points**2, axis=1) - 2.0 * products
    inverse = 1.0 / (1.0 + jnp.maximum(squares, 0.0))
    k1 = weights[:, None] * jnp.sqrt(inverse)
    k3 = k1 * inverse * unit
    witness = k1.T @ scores - (k3.T @ positions - jnp.sum(k3, axis=0)[:, None] * points)
    # The derivative of the root is infinite at zero.
    return jnp.sqrt(jnp.mean(witness**2) + jnp.finfo(jnp.float32).tiny)
