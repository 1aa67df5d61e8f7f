"""The chains of one cell of the acceptance experiment, as long as they still tell something."""

from collections.abc import Callable, Mapping

import jax
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from sgtune.model import Model
from sgtune.model.positions import to_matrix
from sgtune.samplers.adam_mcmc import drift
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep, independent_chains, mapped_axes
from sgtune.study.adam_mcmc.autocorrelation import jackknife_times

__all__ = ["SAMPLER", "chains_of_cell"]

SAMPLER = "adam-mcmc"
MOST_PARAMETERS = 200
"""Jumps and autocorrelation times are of this many parameters, evenly spaced; squares are of all."""

SNAPSHOTS = 50
"""The mean length of an update is over this many steps of every stretch between two decisions."""


def chains_of_cell(
    model: Model,
    arm: Arm,
    starts: Float[np.ndarray, "w d"],
    sds: Float[np.ndarray, " d"],
    centre: Float[np.ndarray, " d"],
    *,
    warmup: int,
    steps: int,
    long: int,
    is_decided: Callable[[Mapping], bool],
    seed: int,
    name: str,
    share: float = 1.0,
) -> dict:
    """What W chains of one arm did in at least ``steps`` steps after their warm-up, and in at most ``long``.

    After ``steps`` steps, and whenever that number has doubled, a cell that ``is_decided`` stops. ``share`` is that of
    `effective_share`.

    Returns:
        ``steps``, and for each chain: ``acceptance``, the mean probability of the tests after the warm-up; ``jump``,
        the mean of ((theta_{t+1} - theta_t) / sd)^2, which needs no long run; ``square``, the mean of
        ((theta - centre) / sd)^2, 1 of the posterior; and ``update``, the mean of |u| / s. ``halves`` has the
        ``square`` of the first and of the second half of the run. ``time`` is the integrated autocorrelation time of
        all chains together, in steps (None: they are too slow for the run, or one never moved), and ``time_without``
        that of all chains but the first, the second, ..., for its standard error.

    The chains are independent. Squares are of every draw up to D = 399, and of each (D / 200)-th from there on. Memory:
    W (4 k + 8) steps / stride bytes, k at most 200 parameters.
    """
    places = np.unique(np.linspace(0, model.dimension - 1, min(model.dimension, MOST_PARAMETERS)).astype(int))
    # Where D is large a coordinate hardly moves in D / 200 steps: one of that many draws has all that ESS needs.
    stride = max(1, model.dimension // MOST_PARAMETERS)
    chains = independent_chains(
        model, SAMPLER, arm, starts, seed=seed, replicate=f"adam_mcmc {name}", own_minibatches=True
    )
    watched = _Watched(chains, places, sds, centre, stride)
    if warmup:
        chains.advance(warmup, warmup)
    watched.begin()
    target = steps
    while True:
        watched.advance(target - watched.steps)
        record = watched.record(arm)
        if watched.steps >= long or is_decided(record):
            return {**record, **watched.times(share)}
        target = min(2 * target, max(long, steps))


class _Watched:
    """An ensemble of AdamMCMC whose squares, jumps, updates and thinned draws are kept from `begin` on."""

    def __init__(
        self,
        chains: Lockstep,
        places: np.ndarray,
        sds: Float[np.ndarray, " d"],
        centre: Float[np.ndarray, " d"],
        stride: int,
    ):
        self.chains, self.places, self.sds, self.centre, self.stride = chains, places, sds, centre, stride
        self.steps = 0
        self.squares: list[Float[np.ndarray, "n w"]] = []
        self.thinned: list[Float[np.ndarray, "n w k"]] = []
        self.updates, self.jumps = np.zeros(chains.width), np.zeros(chains.width)

    def begin(self) -> None:
        """Forget the warm-up's tests, and take the jumps from here."""
        self.warmup, self.warmup_rate = self.chains.steps_done, self._rates()
        start = np.asarray(to_matrix(self.chains.states.position))[None]
        self.last = self._deviations(start, self.places)

    def _rates(self) -> Float[np.ndarray, " w"]:
        return np.asarray(self.chains.states.acceptance.mean_probability, np.float64)

    def _deviations(self, draws: Float[np.ndarray, "n w d"], places: np.ndarray | slice) -> np.ndarray:
        return (draws[:, :, places].astype(np.float64) - self.centre[places]) / self.sds[places]

    def advance(self, n_steps: int) -> None:
        """``n_steps`` more, in pieces, because u is known only where a piece ends: there it stands for its piece."""
        piece = max(1, n_steps // SNAPSHOTS)
        for done in range(0, n_steps, piece):
            length = min(piece, n_steps - done)
            self._advance_piece(length)
            self.updates += length * _update_lengths(self.chains)

    def _advance_piece(self, length: int) -> None:
        end = self.steps + length
        while self.steps < end:
            draws = self.chains.advance_chunk(end - self.steps)
            own = self._deviations(draws, self.places)
            self.jumps += (np.diff(own, axis=0, prepend=self.last) ** 2).sum(axis=(0, 2))
            # Of the whole run, the draws of the steps 0, stride, 2 stride, ...
            kept = slice(-self.steps % self.stride, None, self.stride)
            self.thinned.append(own[kept].astype(np.float32))
            self.squares.append((self._deviations(draws[kept], slice(None)) ** 2).mean(axis=2))
            self.last = own[-1:]
            self.steps += len(own)

    def record(self, arm: Arm) -> dict:
        """All of a cell's numbers but the autocorrelation times."""
        squares = np.concatenate(self.squares)
        halves = squares[: len(squares) // 2], squares[len(squares) // 2 :]
        rates = (self.warmup + self.steps) * self._rates() - self.warmup * self.warmup_rate
        return {
            "steps": self.steps,
            "arm": arm.to_record(),
            "acceptance": (rates / self.steps).tolist(),
            "jump": (self.jumps / (self.steps * len(self.places))).tolist(),
            "square": squares.mean(axis=0).tolist(),
            "halves": [half.mean(axis=0).tolist() for half in halves],
            "update": (self.updates / (self.steps * arm.to_record()["noise_sd"])).tolist(),
        }

    def times(self, share: float) -> dict:
        """``time`` and ``time_without``, in steps (`jackknife_times`)."""
        time, without = jackknife_times(np.concatenate(self.thinned), share)
        of_steps = [None if one is None else one * self.stride for one in (time, *without)]
        return {"time": of_steps[0], "time_without": of_steps[1:]}


def _update_lengths(chains: Lockstep) -> Float[np.ndarray, " w"]:
    """|u| of each chain's last step."""
    states = chains.states
    updates = _updates(states.m, states.v, states.k, chains.hyperparameters)
    return np.linalg.norm(np.asarray(to_matrix(updates), np.float64), axis=1)


@jax.jit
def _updates(m: PyTree, v: PyTree, k: Int[Array, " w"], hyperparameters: Mapping) -> PyTree:
    return jax.vmap(drift, in_axes=(0, 0, 0, mapped_axes(hyperparameters)))(m, v, k, hyperparameters)
