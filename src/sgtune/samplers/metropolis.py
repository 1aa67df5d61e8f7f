"""The Metropolis-Hastings test, and the statistics of its outcomes that a chain keeps.

A proposal theta' ~ q(. | theta) is accepted with probability min(1, ratio),

    ratio = pi(theta') q(theta | theta') / (pi(theta) q(theta' | theta))

and otherwise the chain stays where it is. Invariant density: pi, exactly, for every q.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from sgtune.samplers.target import Target

__all__ = [
    "STUCK",
    "Acceptance",
    "MetropolisState",
    "acceptance_statistics",
    "metropolis_step",
    "no_acceptance",
    "remarks_on_acceptance",
    "start_chain",
    "take_or_leave",
]

STUCK = 1_000
"""A chain that accepts no proposal for this many steps in a row is reported."""

FEWEST_TESTS = 50
"""A chain of at least this many tests that accepts no proposal at all is reported, too."""


class Acceptance(NamedTuple):
    """Outcomes of a chain's tests: the last one, and statistics of all so far.

    Attributes:
        is_accepted: whether the last proposal was accepted.
        probability: min(1, ratio) of the last proposal; 0 if the ratio was not finite.
        n_proposals: tests so far.
        n_accepted: proposals accepted so far.
        mean_probability: mean of ``probability`` over all tests.
        n_since: proposals rejected since the last accepted one.
        longest: the largest ``n_since`` so far.
    """

    is_accepted: Bool[Array, ""]
    probability: Float[Array, ""]
    n_proposals: Int[Array, ""]
    n_accepted: Int[Array, ""]
    mean_probability: Float[Array, ""]
    n_since: Int[Array, ""]
    longest: Int[Array, ""]


def no_acceptance() -> Acceptance:
    """Before the first test."""
    zero, none = jnp.float32(0), jnp.int32(0)
    return Acceptance(jnp.array(False), zero, none, none, zero, none, none)


def metropolis_step(
    key: PRNGKeyArray, log_ratio: Float[Array, ""], before: Acceptance, proposed: PyTree, current: PyTree
) -> tuple[PyTree, Acceptance]:
    """The test of a proposal with this log ratio: ``proposed`` if it is accepted, otherwise ``current`` bit for bit,
    and the outcome. A proposal whose ratio is not finite is never accepted.

    The caller must pass a log ratio that is not finite if any number of the proposal is not.
    """
    probability = jnp.where(jnp.isfinite(log_ratio), jnp.exp(jnp.minimum(log_ratio, 0.0)), 0.0)
    is_accepted = jax.random.uniform(key) < probability
    n_proposals = before.n_proposals + 1
    n_since = jnp.where(is_accepted, 0, before.n_since + 1)
    acceptance = Acceptance(
        is_accepted=is_accepted,
        probability=probability,
        n_proposals=n_proposals,
        n_accepted=before.n_accepted + is_accepted,
        # A running mean, because a float32 sum of many numbers stops growing.
        mean_probability=before.mean_probability + (probability - before.mean_probability) / n_proposals,
        n_since=n_since,
        longest=jnp.maximum(before.longest, n_since),
    )
    chosen = jax.tree.map(lambda new, old: jnp.where(is_accepted, new, old), proposed, current)
    return chosen, acceptance


class MetropolisState(NamedTuple):
    """State of a chain without memory: MALA's and HMC's.

    Attributes:
        position: the chain's.
        log_density: exact, less a constant, at ``position``.
        gradient: of the log density there.
        acceptance: outcomes of the tests.
        estimator: the gradient estimator's state.
    """

    position: PyTree
    log_density: Float[Array, ""]
    gradient: PyTree
    acceptance: Acceptance
    estimator: PyTree


def start_chain(
    key: PRNGKeyArray, position: PyTree, estimator: PyTree, target: Target, hyperparameters: dict
) -> MetropolisState:
    """A chain at ``position``."""
    log_density, gradient = target.log_density_and_gradient(position)
    return MetropolisState(position, log_density, gradient, no_acceptance(), estimator)


def take_or_leave(
    key: PRNGKeyArray,
    log_ratio: Float[Array, ""],
    state: MetropolisState,
    proposed: tuple[PyTree, Float[Array, ""], PyTree],
) -> MetropolisState:
    """``state`` after the test of ``proposed``: a position, its log density, its gradient."""
    current = (state.position, state.log_density, state.gradient)
    taken, acceptance = metropolis_step(key, log_ratio, state.acceptance, proposed, current)
    return MetropolisState(*taken, acceptance, state.estimator)


def acceptance_statistics(state: Any) -> dict[str, Array]:
    """Statistics of a state with an ``acceptance``, or of many states with a leading axis.

    ``acceptance_rate`` is the share of all proposals so far that were accepted; ``mean_acceptance_probability`` is
    the mean of their probabilities: the same number in the long run, with less noise. ``longest_rejection`` is the
    largest number of rejections in a row.
    """
    acceptance = state.acceptance
    return {
        "acceptance_rate": acceptance.n_accepted / acceptance.n_proposals,
        "mean_acceptance_probability": acceptance.mean_probability,
        "longest_rejection": acceptance.longest,
    }


def remarks_on_acceptance(
    sampler: str, when_stuck: str, statistics: Mapping[str, float], numbers: Mapping[str, float]
) -> list[str]:
    """A line if a chain accepted nothing for `STUCK` steps in a row, or in all of at least `FEWEST_TESTS` steps: it
    names the settings, and what to change.

    Args:
        sampler: its name; ``when_stuck``: its advice (`sgtune.samplers.Sampler`).
        statistics: of `acceptance_statistics`, or of a sampler without a test.
        numbers: the chain's hyperparameters.
    """
    longest = int(statistics.get("longest_rejection", 0))
    is_frozen = statistics.get("acceptance_rate") == 0
    if longest < (FEWEST_TESTS if is_frozen else STUCK):
        return []
    at = ", ".join(f"{name}={number:.3g}" for name, number in numbers.items())
    return [f"{sampler}: no proposal was accepted for {longest:,} steps in a row, at {at}; {when_stuck}"]
