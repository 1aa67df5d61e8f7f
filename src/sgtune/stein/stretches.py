"""The KSD's sums over stretches of a chain, from which `sgtune.stein.quadratic` estimates its bias and variance."""

import numpy as np
from jaxtyping import Int, PyTree

from sgtune.stein.kernel import Draws, Scale, draw_matrices
from sgtune.stein.ksd import BLOCK, check_block, pair_blocks, stein_values
from sgtune.stein.quadratic import N_STRETCHES, Stretches, check_stretches

__all__ = ["ksd_stretches"]


def ksd_stretches(
    positions: PyTree,
    scores: PyTree,
    stretch: Int[np.ndarray, " n"],
    scale: Scale = "identity",
    *,
    block: tuple[int, int] = BLOCK,
) -> Stretches:
    """Sums over stretches of a chain of k_pi, whose mean over all pairs is KSD^2 (`sgtune.stein.ksd`).

    Args:
        positions, scores, scale, block: as in `sgtune.stein.ksd`; memory and time are the same, too.
        stretch: of each draw (`sgtune.stein.quadratic.stretch_of`).

    Returns:
        The sums, all infinite if a position or score is not finite.

    Raises:
        InputError: as `sgtune.stein.ksd`, or for the stretches.
    """
    rows, columns = check_block(block)
    positions, scores = draw_matrices(positions, scores)
    in_stretch = np.arange(N_STRETCHES)[:, None] == check_stretches(stretch, len(positions))
    counts, in_stretch = in_stretch.sum(axis=1), in_stretch.astype(np.float64)
    draws = Draws.read(positions, scores, scale)
    if draws is None:
        return Stretches(counts, np.full((N_STRETCHES, N_STRETCHES), np.inf), np.full(N_STRETCHES, np.inf))
    sums, own = np.zeros((N_STRETCHES, N_STRETCHES)), np.zeros(N_STRETCHES)
    with np.errstate(over="ignore", invalid="ignore"):
        for pairs in pair_blocks(draws, rows, columns):
            a, b = pairs.a, pairs.b
            values = stein_values(pairs)
            if a == b:
                own += in_stretch[:, a] @ (np.diagonal(pairs.ss) + pairs.dimension)
                np.fill_diagonal(values, 0.0)
            once = in_stretch[:, a] @ values @ in_stretch[:, b].T
            sums += once if a == b else once + once.T
    return Stretches(counts, sums, own)
