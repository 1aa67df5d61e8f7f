"""Regret and its standard error, from the losses of arms in fresh runs. Arithmetic alone.

Losses are an array (R, S) for R fresh replicates, which every arm has run, and S tuning runs: column j is for the arm
that the j-th tuning run chose. Replicate i of all arms uses the same minibatches, so the jackknife leaves it out of all
arms at once.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgtune.study.catalogue import cap_of

__all__ = ["Estimate", "best_of", "chosen_losses", "over_loss", "ratio"]


class Estimate(NamedTuple):
    """A number and its standard error, None if there is only one run."""

    value: float
    se: float | None


def chosen_losses(
    losses: Float[np.ndarray, "r arms"], arms: Sequence[int | None], loss: str
) -> Float[np.ndarray, "r s"]:
    """The losses of the arms that tuning runs chose; one that found none counts as the cap of ``loss``."""
    cap = np.full(len(losses), cap_of(loss))
    return np.stack([cap if arm is None else losses[:, arm] for arm in arms], axis=1)


def best_of(losses: Float[np.ndarray, "r arms"], finalists: Sequence[int]) -> int:
    """The finalist of the smallest mean loss."""
    return min(finalists, key=lambda arm: losses[:, arm].mean())


def ratio(
    above: Float[np.ndarray, "r s"], below: Float[np.ndarray, "r t"], *, same_tunings: bool = True
) -> Estimate:
    """The mean of ``above`` over the mean of ``below``, and its standard error.

    The variance is the sum of two independent parts: the variance from replicates, by the jackknife that leaves
    replicate i out of both arrays; and the variance from tuning runs, by the jackknife over columns: of both arrays at
    once if they have equally many, which are then of the ``same_tunings``, otherwise of each alone. An array of one
    column has no variance from tuning. (Columns also differ by the noise of their means, so the second variance
    includes some of the first: the sum is slightly too large.)
    """
    n, (s, t) = len(above), (above.shape[1], below.shape[1])
    value = float(above.mean() / below.mean())
    if n < 2:
        return Estimate(value, None)

    without = [_means_without(above, 0) / _means_without(below, 0)]
    if s == t and same_tunings:
        without.append(_means_without(above, 1) / _means_without(below, 1))
    else:
        without += [_means_without(above, 1) / below.mean(), above.mean() / _means_without(below, 1)]
    variance = sum((len(values) - 1) * values.var() for values in without)
    return Estimate(value, float(np.sqrt(variance)))


def over_loss(number: float, below: Float[np.ndarray, "r t"]) -> Estimate:
    """A known ``number`` over the mean of ``below``."""
    return ratio(np.full((len(below), 1), number), below)


def _means_without(losses: Float[np.ndarray, "r s"], axis: int) -> Float[np.ndarray, " n"]:
    """The mean of ``losses`` without each of its rows (axis 0) or columns (axis 1); of a single one the mean itself."""
    sums, n = losses.sum(axis=1 - axis), losses.shape[axis]
    return (sums.sum() - sums) / (losses.size - losses.shape[1 - axis]) if n > 1 else sums / losses.size
