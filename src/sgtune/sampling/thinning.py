"""The draws of a chain that are kept, or that judge it: evenly spaced, or a random subset of all draws at any time."""

import jax
import numpy as np
from jaxtyping import Bool, Int

from sgtune.support.randomness import named_key

__all__ = ["FEWEST_POINTS", "Reservoir", "evenly_spaced", "random_subset", "thin_draws"]


def thin_draws(draws: np.ndarray, thin: int) -> np.ndarray:
    """Every ``thin``-th row, but at least ten rows; a chain of fewer than ten rows is not thinned."""
    every = min(thin, max(1, len(draws) // 10))
    return draws[every - 1 :: every]


def evenly_spaced(draws: np.ndarray, at_most: int) -> np.ndarray:
    """At most ``at_most`` rows, evenly spaced, including the last one."""
    if len(draws) <= at_most:
        return draws
    return draws[np.linspace(len(draws) / at_most, len(draws), at_most).astype(int) - 1]


def random_subset(n: int, at_most: int, seed: int, *names: object) -> Int[np.ndarray, " k"]:
    """At most ``at_most`` of the places 0, ..., n - 1, uniformly at random without replacement, ascending.

    The same seed, names and numbers give the same places (`sgtune.support.randomness.named_key`).
    """
    if n <= at_most:
        return np.arange(n)
    # NumPy's generator, because JAX would compile a program for each n.
    bits = np.asarray(jax.random.key_data(named_key(seed, "subset", *names)))
    return np.sort(np.random.default_rng(bits).choice(n, at_most, replace=False))


FEWEST_POINTS = 10
"""Thinning leaves at least this many draws."""

PIECE = 2**20
"""New steps are ranked in pieces of this many, or of as many as are kept: some 50 bytes each."""


class Reservoir:
    """Uniformly random subsets of a growing chain's draws, in bounded memory (bottom-k sampling).

    Every step has a random rank, and the draws with the lowest ranks are kept. The k draws with the lowest ranks so far
    are a uniformly random subset without replacement, for every k and every length of the chain; the subsets of
    successive lengths and sizes overlap as much as possible. The ranks are known before the steps are made, so only the
    kept draws are copied out of the sampler's program.

    Args:
        seed, names: of the ranks (`sgtune.support.randomness.named_key`).
        thin: only every thin-th draw counts, once there are ten of them; before, ten of all draws do, or all draws if
            there are fewer.

    Attributes:
        n_steps: steps so far.
        steps: the numbers, from 1, of the steps whose draws are kept; ascending.
    """

    def __init__(self, seed: int, *names: object, thin: int = 1):
        # NumPy's generator, because JAX would compile a program for each number of steps.
        bits = np.asarray(jax.random.key_data(named_key(seed, "ranks", *names)))
        self.generator = np.random.default_rng(bits)
        self.thin = thin
        self.n_steps = 0
        self.steps = np.empty(0, np.int64)
        self.ranks = np.empty(0)
        # Draws of higher rank have been dropped, or were never kept.
        self.limit = np.inf

    def extend(self, n_steps: int, at_most: int) -> tuple[Bool[np.ndarray, " kept"], Int[np.ndarray, " new"]]:
        """Add ``n_steps`` steps, after which at most ``at_most`` draws are kept (but ten of a short chain).

        Returns:
            which of the draws kept so far stay; the numbers of the new steps whose draws must be kept.
        """
        before, first, last = self.steps, self.n_steps + 1, self.n_steps + n_steps
        while True:
            self._extend(min(max(PIECE, len(self.steps)), last - self.n_steps), at_most)
            if self.n_steps == last:
                break
        return np.isin(before, self.steps), self.steps[self.steps >= first]

    def _extend(self, n_steps: int, at_most: int) -> None:
        steps = np.concatenate([self.steps, np.arange(self.n_steps + 1, self.n_steps + n_steps + 1)])
        ranks = np.concatenate([self.ranks, self.generator.random(n_steps)])
        self.n_steps += n_steps
        counts = (steps % self.thin == 0) & (ranks < self.limit)
        if counts.sum() > at_most:
            self.limit = np.partition(ranks[counts], at_most)[at_most]
            counts &= ranks < self.limit
        if self._is_short:
            counts[np.argsort(ranks, kind="stable")[:FEWEST_POINTS]] = True
        self.steps, self.ranks = steps[counts], ranks[counts]

    @property
    def _is_short(self) -> bool:
        return self.thin > 1 and self.n_steps < FEWEST_POINTS * self.thin

    def part(self, at_most: int) -> tuple[Int[np.ndarray, " n"], int]:
        """Places, in ``steps``, of at most ``at_most`` draws, a random subset of the draws that count; and the number
        of draws that count."""
        if self._is_short:
            among, n_draws = np.arange(len(self.steps)), min(FEWEST_POINTS, self.n_steps)
            at_most = min(at_most, n_draws)
        else:
            among = np.flatnonzero((self.steps % self.thin == 0) & (self.ranks < self.limit))
            n_draws = self.n_steps // self.thin
        lowest = np.argsort(self.ranks[among], kind="stable")[:at_most]
        return np.sort(among[lowest]), n_draws
