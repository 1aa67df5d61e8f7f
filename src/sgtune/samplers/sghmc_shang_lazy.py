"""SGHMC of Eq. (14) (`sgtune.samplers.sghmc_shang`) that recomputes the matrix root of its noise only as S changes.

    B     <- root of (A I - h S / 2)+, if the last one is 1% of S's memory, min(t, 1 / kappa) steps, ago or more
    p     <- p + h grad - h A p + sqrt(2 h) B N(0, I)

Everything else is the same: positions, S, h, A and ``kappa``, the invariant density, and the statistics. Within 1% of
its memory S changes by about 1% of its distance from the recent estimates, so the injected noise is as good. A chain of
t steps computes about 100 (1 + log(t / 100)) roots at kappa = 0. This saves time where noise is clipped: a root then
needs the eigenvectors of a D x D matrix, which at D = 100 take far longer than the rest of a step.

Registered is ``sghmc-shang-lazy``, with the full covariance.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from sgtune.samplers.base import Sampler, noise_like
from sgtune.samplers.running_covariance import RunningCovariance, no_steps, updated
from sgtune.samplers.sghmc_shang import SGHMCShangState, clipped_root, clipped_statistics, kicked
from sgtune.samplers.target import Target
from sgtune.support.axes import FRICTION_RATE, KAPPA

__all__ = ["SGHMCShangLazyState", "sghmc_shang_lazy"]

SHARE = 0.01
"""The root is recomputed after this share of S's memory."""


class SGHMCShangLazyState(NamedTuple):
    """`sgtune.samplers.sghmc_shang.SGHMCShangState` with B, the least eigenvalue, and the step that computed them."""

    position: PyTree
    momentum: PyTree
    noise: RunningCovariance
    estimator: PyTree
    n_clipped: Int[Array, ""]
    friction_needed: Float[Array, ""]
    root: Float[Array, "D D"]
    least: Float[Array, ""]
    made_at: Int[Array, ""]


def init(
    key: PRNGKeyArray, position: PyTree, estimator: PyTree, target: Target, hyperparameters: dict
) -> SGHMCShangLazyState:
    """A chain at ``position`` with p ~ N(0, I), and no root yet: the first step computes it."""
    friction = jnp.asarray(hyperparameters["friction"], jnp.float32)
    noise = no_steps("full", position)
    return SGHMCShangLazyState(
        position,
        noise_like(key, position),
        noise,
        estimator,
        jnp.int32(0),
        friction,
        noise.covariance,
        jnp.float32(0),
        jnp.int32(0),
    )


def step(
    key: PRNGKeyArray, state: SGHMCShangLazyState, target: Target, hyperparameters: dict
) -> SGHMCShangLazyState:
    """One step of Eq. (14), in the order of Algorithm 1."""
    h, friction = hyperparameters["step_size"], hyperparameters["friction"]
    position = jax.tree.map(lambda x, p: x + h * p, state.position, state.momentum)
    gradient, covariance, estimator = target.gradient_with_covariance(position, 0, state.estimator, "full")
    noise = updated(state.noise, covariance, hyperparameters["kappa"])
    memory = jnp.minimum(noise.n_steps, 1 / jnp.maximum(hyperparameters["kappa"], 1e-9))
    is_due = (noise.n_steps - state.made_at) >= SHARE * memory

    # A loop of zero or one rounds, not a condition: under `jax.vmap` a condition computes both branches. The matrix
    # must change in the loop: XLA hoists invariant code out of loops, and would compute the root in every step.
    def make(carry):
        matrix = carry[0]
        return (jnp.zeros_like(matrix), *clipped_root(matrix), noise.n_steps, jnp.array(False))

    matrix = friction * jnp.eye(len(state.root)) - h / 2 * noise.covariance
    start = (matrix, state.root, state.least, state.made_at, is_due)
    _, root, least, made_at, _ = jax.lax.while_loop(lambda carry: carry[-1], make, start)
    momentum = kicked(key, state.momentum, gradient, root, h, friction)
    return SGHMCShangLazyState(
        position,
        momentum,
        noise,
        estimator,
        state.n_clipped + (least < 0),
        jnp.maximum(state.friction_needed, friction - least),
        root,
        least,
        made_at,
    )


def statistics(state: SGHMCShangLazyState) -> dict[str, Array]:
    """`sgtune.samplers.sghmc_shang.clipped_statistics`."""
    return clipped_statistics(SGHMCShangState(*(getattr(state, name) for name in SGHMCShangState._fields)))


sghmc_shang_lazy = Sampler(
    init,
    step,
    (FRICTION_RATE, KAPPA),
    statistics=statistics,
    covariance="full",
    step_size_power=2,
)
