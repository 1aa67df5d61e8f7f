"""Stochastic gradient Hamiltonian Monte Carlo as in the CCAdL paper (Shang et al. 2015, Eq. 14).

Let h be the ``step_size``, A the ``friction`` (1), and grad an estimate of grad log pi whose noise has the covariance
Sigma. A chain starts with p ~ N(0, I):

    theta <- theta + h p
    S     <- (1 - kappa_t) S + kappa_t Sigma(theta)              kappa_t = max(1 / t, kappa), t = 1, 2, ...
    p     <- p + h grad - h A p + N(0, 2 h (A I - h S / 2)+)

Gradient and Sigma are from one minibatch, at the new theta. h, A, S and ``kappa`` are as in `sgtune.samplers.ccadl`:
the momentum has unit scale, and step_size = h^2, v = h p, a = A h, b = h^2 Sigma / 2 are the units of `sghmc`
(`sgtune.samplers.sgnht`). Unlike `sghmc` it never draws a new momentum, so it has no number of leapfrogs.

Invariant density, as h -> 0 and with S the exact Sigma(theta): pi(theta) N(p | 0, I), as long as A I - h S / 2 is
positive semi-definite: the noise that is left out equals the noise of the gradient. Where it is not, (.)+ sets the
negative eigenvalues to 0, and the chain is too hot. Two statistics of a chain show this:

* ``clipped_share``: the share of all steps so far in which A I - h S / 2 had a negative eigenvalue;
* ``friction_needed``: the largest eigenvalue of h S / 2 in those steps, which is the least A without clipping;
  A itself if there were no such steps.

Cost: with the full covariance a step has a Cholesky factorisation, D^3 / 3 operations, in place of CCAdL's product of
S and p. Where it fails for a chain, a step of all chains in lockstep also computes eigenvectors.

``sghmc-shang-lazy`` recomputes the root of its noise's covariance only as S changes:

    B     <- root of (A I - h S / 2)+, if the last one is 1% of S's memory, min(t, 1 / kappa) steps, ago or more
    p     <- p + h grad - h A p + sqrt(2 h) B N(0, I)

Everything else is the same. Within 1% of its memory S changes by about 1% of its distance from the recent estimates, so
the injected noise is as good. A chain of t steps computes about 100 (1 + log(t / 100)) roots at kappa = 0. This saves
time where noise is clipped: a root then needs the eigenvectors of a D x D matrix, which at D = 100 take far longer than
the rest of a step.
"""

from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from sgtune.samplers.base import Sampler, noise_like
from sgtune.samplers.covariance import FORMS, Covariance, RunningCovariance, no_steps, times, updated
from sgtune.samplers.target import Target
from sgtune.support.axes import FRICTION_RATE, KAPPA
from sgtune.support.errors import check_choice

__all__ = [
    "Root",
    "SGHMCShangState",
    "make_sghmc_shang",
    "sghmc_shang",
    "sghmc_shang_diagonal",
    "sghmc_shang_lazy",
]

SHARE = 0.01
"""The lazy sampler recomputes the root after this share of S's memory."""


class Root(NamedTuple):
    """B, the least eigenvalue of the matrix that it is the root of (0 if positive), and the step that computed them."""

    root: Covariance
    least: Float[Array, ""]
    made_at: Int[Array, ""]


class SGHMCShangState(NamedTuple):
    """Position, momentum of unit scale in its shape, S, the gradient estimator's state, and the clipped steps.

    Attributes:
        n_clipped: steps so far in which the noise's covariance was clipped.
        friction_needed: see the module.
        kept: the root of the noise's covariance, if it is not computed in every step; otherwise ().
    """

    position: PyTree
    momentum: PyTree
    noise: RunningCovariance
    estimator: PyTree
    n_clipped: Int[Array, ""]
    friction_needed: Float[Array, ""]
    kept: Root | tuple


def init(
    form: str,
    is_lazy: bool,
    key: PRNGKeyArray,
    position: PyTree,
    estimator: PyTree,
    target: Target,
    hyperparameters: dict,
) -> SGHMCShangState:
    """A chain at ``position`` with p ~ N(0, I); if it is lazy its first step computes a root."""
    friction = jnp.asarray(hyperparameters["friction"], jnp.float32)
    noise = no_steps(form, position)
    kept = Root(noise.covariance, jnp.float32(0), jnp.int32(0)) if is_lazy else ()
    return SGHMCShangState(
        position, noise_like(key, position), noise, estimator, jnp.int32(0), friction, kept
    )


def clipped_root(matrix: Covariance) -> tuple[Covariance, Float[Array, ""]]:
    """B with B B' = the matrix less its negative eigenvalues; and the least eigenvalue, or 0 if that is positive.

    A diagonal matrix is given, and its root returned, as ``(D,)``. The root of a matrix that is not finite is not
    finite either, so that its chain counts as diverged; the eigenvalue then has no meaning.
    """
    if matrix.ndim == 1:
        return jnp.sqrt(jnp.maximum(matrix, 0.0)), jnp.minimum(jnp.min(matrix), 0.0)

    # A loop of zero or one rounds, not a condition: under `jax.vmap` a condition computes both branches. The matrix
    # must change in the loop: XLA hoists invariant code out of loops, and would decompose every matrix. A chain that
    # has diverged has no root: with it all chains of an ensemble would pay for eigenvectors in every step.
    def has_failed(carry):
        return ~carry[-1] & jnp.isnan(carry[0]).any() & jnp.isfinite(carry[2]).all()

    def by_eigenvectors(carry):
        values, vectors = jnp.linalg.eigh(carry[2])
        root = vectors * jnp.sqrt(jnp.maximum(values, 0.0))
        return root, jnp.minimum(values[0], 0.0), jnp.zeros_like(matrix), jnp.array(True)

    start = (jnp.linalg.cholesky(matrix), jnp.float32(0), matrix, jnp.array(False))
    return jax.lax.while_loop(has_failed, by_eigenvectors, start)[:2]


def kicked(
    key: PRNGKeyArray,
    momentum: PyTree,
    gradient: PyTree,
    root: Covariance,
    h: Float[Array, ""],
    friction: Float[Array, ""],
) -> PyTree:
    """p + h grad - h A p + sqrt(2 h) B N(0, I), where B is ``root``."""
    flat, unravel = ravel_pytree(noise_like(key, momentum))
    return jax.tree.map(
        lambda p, g, z: p + h * (g - friction * p) + jnp.sqrt(2 * h) * z,
        momentum,
        gradient,
        unravel(times(root, flat)),
    )


def _root_if_due(
    matrix: Covariance, noise: RunningCovariance, kappa: Float[Array, ""] | float, kept: Root
) -> Root:
    """The root of ``matrix``, or the last one where S has hardly changed since."""
    memory = jnp.minimum(noise.n_steps, 1 / jnp.maximum(kappa, 1e-9))
    is_due = (noise.n_steps - kept.made_at) >= SHARE * memory

    # A loop of zero or one rounds, as in `clipped_root`: XLA would hoist the root of an unchanged matrix out of it.
    def make(carry):
        matrix = carry[0]
        return jnp.zeros_like(matrix), Root(*clipped_root(matrix), noise.n_steps), jnp.array(False)

    return jax.lax.while_loop(lambda carry: carry[-1], make, (matrix, kept, is_due))[1]


def step(
    form: str,
    is_lazy: bool,
    key: PRNGKeyArray,
    state: SGHMCShangState,
    target: Target,
    hyperparameters: dict,
) -> SGHMCShangState:
    """One step of Eq. (14), in the order of Algorithm 1."""
    h, friction = hyperparameters["step_size"], hyperparameters["friction"]
    position = jax.tree.map(lambda x, p: x + h * p, state.position, state.momentum)
    gradient, covariance, estimator = target.gradient_with_covariance(position, 0, state.estimator, form)
    noise = updated(state.noise, covariance, hyperparameters["kappa"])
    whole = friction if form == "diagonal" else friction * jnp.eye(noise.covariance.shape[0])
    matrix = whole - h / 2 * noise.covariance
    if is_lazy:
        kept = _root_if_due(matrix, noise, hyperparameters["kappa"], state.kept)
        root, least = kept[:2]
    else:
        kept, (root, least) = (), clipped_root(matrix)
    momentum = kicked(key, state.momentum, gradient, root, h, friction)
    return SGHMCShangState(
        position,
        momentum,
        noise,
        estimator,
        state.n_clipped + (least < 0),
        jnp.maximum(state.friction_needed, friction - least),
        kept,
    )


def clipped_statistics(state: SGHMCShangState) -> dict[str, Array]:
    """Statistics of a state, or of many states with a leading axis."""
    n_steps = jnp.maximum(state.noise.n_steps, 1)
    return {"clipped_share": state.n_clipped / n_steps, "friction_needed": state.friction_needed}


def make_sghmc_shang(*, covariance: str = "full", is_lazy: bool = False) -> Sampler:
    """SGHMC of Eq. (14) with a "full" or "diagonal" covariance; the same arguments give the same object.
    `sgtune.sample` takes it by a name, once it is in `sgtune.samplers.SAMPLERS` under that.

    Args:
        is_lazy: whether the root of the noise's covariance is recomputed only as S changes.

    Raises:
        InputError: ``covariance`` is not known.
    """
    check_choice("covariance", covariance, FORMS)
    return _make(covariance, is_lazy)


@cache
def _make(covariance: str, is_lazy: bool) -> Sampler:
    return Sampler(
        partial(init, covariance, is_lazy),
        partial(step, covariance, is_lazy),
        (FRICTION_RATE, KAPPA),
        statistics=clipped_statistics,
        covariance=covariance,
        step_size_power=2,
    )


sghmc_shang = make_sghmc_shang()
sghmc_shang_diagonal = make_sghmc_shang(covariance="diagonal")
sghmc_shang_lazy = make_sghmc_shang(is_lazy=True)
