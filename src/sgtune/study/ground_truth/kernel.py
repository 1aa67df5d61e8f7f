"""Compiled programs of NumPyro's NUTS, which take the data and the position as arguments."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

from sgtune.model import Model
from sgtune.model.posterior import Density, log_posterior
from sgtune.study.ground_truth.checkpoints import is_key

__all__ = ["STATISTICS", "Kernel", "advance", "agrees", "initial_state", "shapes"]

STATISTICS = {
    "diverging": lambda state: state.diverging,
    "n_steps": lambda state: state.num_steps,
    "acceptance_rate": lambda state: state.accept_prob,
    "energy": lambda state: state.energy,
    "step_size": lambda state: state.adapt_state.step_size,
}
"""The statistics recorded in every iteration, by name."""

# The largest change of a functional, relative to the largest functional, that rounding on another machine explains.
ROUNDING = 1e-4


class Kernel(NamedTuple):
    """The static arguments of the compiled programs."""

    density: Density
    functionals: Callable | None
    n_warmup: int
    dense: bool
    adapt_mass_matrix: bool
    max_tree_depth: int

    def build(self):
        """NumPyro's pair of functions (init, sample); init must be called before sample in every program."""
        from numpyro.infer.hmc import hmc

        def potential(data, offset):
            return lambda position: -log_posterior(self.density, position, data, offset)

        init, sample = hmc(potential_fn_gen=potential, algo="NUTS")
        settings = {"dense_mass": self.dense, "max_tree_depth": self.max_tree_depth}
        settings["adapt_mass_matrix"] = self.adapt_mass_matrix
        return partial(init, num_warmup=self.n_warmup, **settings), sample


@partial(jax.jit, static_argnums=0)
def initial_state(kernel: Kernel, position, covariance, key, data, offset):
    """NumPyro's state before the first iteration, with ``covariance`` as the inverse mass matrix."""
    init, _ = kernel.build()
    state = init(position, inverse_mass_matrix=covariance, model_args=(data, offset), rng_key=key)
    # With a weakly typed leaf the first block would be compiled separately.
    return jax.tree.map(
        lambda leaf: leaf if is_key(leaf) else jax.lax.convert_element_type(leaf, leaf.dtype), state
    )


@partial(jax.jit, static_argnums=(0, 1))
def advance(kernel: Kernel, length: int, state, data, offset):
    """Run ``length`` iterations: the state after them, flat draws ``(length, D)``, statistics ``(length,)``.

    The statistics include the ``functionals`` of every draw, ``(length, K)``, if the model has any.
    """
    init, sample = kernel.build()
    init(state.z, model_args=(data, offset))

    def body(state, _):
        state = sample(state, model_args=(data, offset))
        statistics = {name: statistic(state) for name, statistic in STATISTICS.items()}
        if kernel.functionals is not None:
            statistics["functionals"] = kernel.functionals(state.z)
        return state, (ravel_pytree(state.z)[0], statistics)

    state, (draws, statistics) = jax.lax.scan(body, state, length=length)
    return state, draws, statistics


def shapes(kernel: Kernel, model: Model) -> PyTree:
    """The shapes of a state, without computing one."""
    dimension = model.dimension
    covariance = jax.ShapeDtypeStruct((dimension, dimension) if kernel.dense else (dimension,), jnp.float32)
    key, offset = jax.random.key(0), jnp.float32(0)
    return jax.eval_shape(
        partial(initial_state, kernel), model.position_shape, covariance, key, model.data, offset
    )


def agrees(kernel: Kernel, state: PyTree, data: PyTree, offset: jax.Array, functionals: np.ndarray) -> bool:
    """Whether the model still gives the state's stored energy and functionals; no checksum covers its functions.

    ``functionals`` are the stored values at the state, of size 0 if the model had none.
    """
    energy = -float(jax.jit(log_posterior, static_argnums=0)(kernel.density, state.z, data, offset))
    stored = float(state.potential_energy)
    if abs(energy - stored) > 0.1 + 1e-4 * abs(stored):
        return False
    if kernel.functionals is None:
        return functionals.size == 0
    now = np.asarray(jax.jit(kernel.functionals)(state.z))
    return now.shape == functionals.shape and bool(
        np.abs(now - functionals).max() <= ROUNDING * np.abs(functionals).max()
    )
