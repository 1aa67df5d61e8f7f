"""Which draws of a chain are kept while it runs, so that a random part of all of them can judge it at any time."""

import jax
import numpy as np
from jaxtyping import Bool, Int

from sgtune.randomness import named_key

__all__ = ["FEWEST_POINTS", "Reservoir"]

FEWEST_POINTS = 10
"""Thinning stops at so many draws."""


class Reservoir:
    """Uniformly random parts of a growing chain's draws, in bounded memory (bottom-k sampling).

    Every step has a random rank, and the draws of the lowest ranks are kept. The k draws of lowest rank among those
    made so far are a uniformly random part without replacement, for every k and every length of the chain; the parts
    of successive lengths and sizes overlap as much as can be. The ranks are known before the steps are made, so that
    no other draw need leave the sampler's program.

    Args:
        seed, names: of the ranks (`sgtune.randomness.named_key`).
        thin: only every thin-th draw counts, as soon as there are ten of them; before that ten of all draws do, or as
            many as there are.

    Attributes:
        n_steps: steps made so far.
        steps: the numbers, from 1, of those whose draws are kept; ascending.
    """

    def __init__(self, seed: int, *names: object, thin: int = 1):
        # NumPy's generator: JAX would compile a program for each number of steps.
        bits = np.asarray(jax.random.key_data(named_key(seed, "ranks", *names)))
        self.generator = np.random.default_rng(bits)
        self.thin = thin
        self.n_steps = 0
        self.steps = np.empty(0, np.int64)
        self.ranks = np.empty(0)
        # Draws of higher rank have been dropped, or were never kept.
        self.limit = np.inf

    def extend(self, n_steps: int, at_most: int) -> tuple[Bool[np.ndarray, " kept"], Int[np.ndarray, " new"]]:
        """``n_steps`` more steps, after which at most ``at_most`` draws are kept (and ten, while they are few).

        Returns:
            which of the draws kept so far stay; the numbers of the new steps whose draws are to be kept.
        """
        first = self.n_steps + 1
        steps = np.concatenate([self.steps, np.arange(first, first + n_steps)])
        ranks = np.concatenate([self.ranks, self.generator.random(n_steps)])
        self.n_steps += n_steps
        counts = (steps % self.thin == 0) & (ranks < self.limit)
        if counts.sum() > at_most:
            self.limit = np.partition(ranks[counts], at_most)[at_most]
            counts &= ranks < self.limit
        if self._is_short:
            counts[np.argsort(ranks, kind="stable")[:FEWEST_POINTS]] = True
        n_before = len(self.steps)
        self.steps, self.ranks = steps[counts], ranks[counts]
        return counts[:n_before], self.steps[self.steps >= first]

    @property
    def _is_short(self) -> bool:
        return self.thin > 1 and self.n_steps < FEWEST_POINTS * self.thin

    def part(self, at_most: int) -> tuple[Int[np.ndarray, " n"], int]:
        """Places, in ``steps``, of at most ``at_most`` draws that are a random part of those that count; and how many
        draws count."""
        if self._is_short:
            among, n_draws = np.arange(len(self.steps)), min(FEWEST_POINTS, self.n_steps)
            at_most = min(at_most, n_draws)
        else:
            among = np.flatnonzero((self.steps % self.thin == 0) & (self.ranks < self.limit))
            n_draws = self.n_steps // self.thin
        lowest = np.argsort(self.ranks[among], kind="stable")[:at_most]
        return np.sort(among[lowest]), n_draws
