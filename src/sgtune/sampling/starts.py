"""Where several chains start: at given positions, or drawn about the modes that a search found."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, PyTree

from sgtune.mode.coordinates import local_factor
from sgtune.mode.modes import Modes
from sgtune.model import Model
from sgtune.model.positions import check_position, flatten, to_matrix
from sgtune.model.posterior import values_and_scores
from sgtune.model.preconditioner import Preconditioner
from sgtune.support.errors import InputError
from sgtune.support.randomness import named_key

__all__ = ["WIDER", "Starts", "given_starts", "wide_starts"]

WIDER = 2.0
"""Starts are drawn with so many times the sds of the posterior's approximation. R-hat compares the spread of the chains
with that within them, so chains must start further apart than they end (Gelman and Rubin 1992); a larger factor would
put starts where a step size that suits the posterior is unstable."""


MOST_HALVINGS = 20


class Starts(NamedTuple):
    """The starts of k chains, in coordinates z of a preconditioner if there is one.

    Attributes:
        positions: flat: ``(k, D)``.
        centres: of each chain's control variates: ``(k, D)``; None if all have the usual one.
        are_given: whether the user chose them.
        remarks: lines on the modes that the chains start about.
    """

    positions: Float[np.ndarray, "k D"]
    centres: Float[np.ndarray, "k D"] | None = None
    are_given: bool = False
    remarks: tuple[str, ...] = ()


def given_starts(
    model: Model, position: PyTree, n_chains: int, preconditioner: Preconditioner | None
) -> Starts:
    """``position``, of one chain or with a leading axis of ``n_chains`` in each leaf.

    Raises:
        InputError: it has another structure or shape.
    """
    shapes = jax.tree.map(lambda leaf: leaf.shape, model.position_shape)
    each = jax.tree.map(lambda leaf: (n_chains, *leaf.shape), model.position_shape)
    given = jax.tree.map(np.shape, position)
    if given == each and jax.tree.structure(position) == jax.tree.structure(model.position_shape):
        rows = to_matrix(position)
    elif given == shapes:
        rows = np.tile(flatten(check_position("position", model, position)), (n_chains, 1))
    else:
        raise InputError(
            f"position: shape {given} is not allowed; {model.name!r} needs {shapes}, or {each}, a start for "
            "each chain"
        )
    if preconditioner is not None:
        rows = preconditioner.coordinates(rows)
    return Starts(np.asarray(rows, np.float64), are_given=True)


def wide_starts(
    model: Model,
    n_chains: int,
    preconditioner: Preconditioner | None,
    modes: Modes | None,
    seed: int,
    replicate: int | str,
) -> Starts:
    """Draws from the Laplace approximation, `WIDER` than it is, about the mode that each chain's own search found.

    The scale is the preconditioner's. The mode that is nearest to its centre is replaced by it, for a pilot may have
    moved it to the posterior's mean. Without a preconditioner the scale is that of the curvature at the mode
    (`sgtune.mode.coordinates.local_factor`), which nobody has checked: where it is nearly zero in a direction, as in
    networks, draws would be far beyond the posterior. A start is then moved half of the way to its mode as long as its
    log density is lower than those of such draws of a Gaussian.

    Args:
        model: without preconditioner.
        modes: None, which only a preconditioner allows: all chains start about its centre.

    Raises:
        InputError: the curvature at a mode is zero or not finite.
    """
    bits = np.asarray(jax.random.key_data(named_key(seed, "starts", model.name, replicate)))
    noise = WIDER * np.random.default_rng(bits).standard_normal((n_chains, model.dimension))
    if modes is None:
        return Starts(noise)
    found_by = modes.of_start[np.arange(n_chains) % len(modes.of_start)]
    of_chain = np.maximum(found_by, 0)
    middles, usual = modes.positions, 0
    if preconditioner is None:
        factors = {
            mode: local_factor(model, middles[mode].astype(np.float32)) for mode in set(of_chain.tolist())
        }
        each = [factors[mode] for mode in of_chain.tolist()]
        noise = np.stack(
            [
                factor * row if factor.ndim == 1 else factor @ row
                for factor, row in zip(each, noise, strict=True)
            ]
        )
        noise = _within(model, middles[of_chain], noise)
    else:
        middles = preconditioner.coordinates(middles)
        usual = int(np.argmin(np.linalg.norm(middles, axis=1)))
        middles[usual] = 0
    centres = None if (of_chain == usual).all() else middles[of_chain]
    return Starts(middles[of_chain] + noise, centres, remarks=tuple(modes.remark(found_by)))


def _within(
    model: Model, middles: Float[np.ndarray, "k D"], noise: Float[np.ndarray, "k D"]
) -> Float[np.ndarray, "k D"]:
    """``noise`` with as many halvings as the log density at ``middles + noise`` needs."""

    def values(rows):
        return values_and_scores(model, rows.astype(np.float32))[0].astype(np.float64)

    # Of a Gaussian it is lower than at the mode by half of WIDER^2 chi^2, whose mean is D and whose sd is sqrt(2 D).
    allowed = WIDER**2 / 2 * (model.dimension + 5 * np.sqrt(2 * model.dimension))
    least = values(middles) - allowed
    for _ in range(MOST_HALVINGS):
        is_far = ~(values(middles + noise) >= least)
        if not is_far.any():
            break
        noise = np.where(is_far[:, None], noise / 2, noise)
    return noise
