"""The time and the memory of drawing a minibatch: of the order of its rows, for any number of data."""

import jax
import numpy as np
import pytest

from sgtune.samplers.minibatch import subset_indices


def equations(jaxpr):
    """All equations, including those of inner programs."""
    for equation in jaxpr.eqns:
        yield equation
        for parameter in equation.params.values():
            for inner in parameter if isinstance(parameter, tuple | list) else (parameter,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from equations(inner)


def made_by(jaxpr):
    """(primitive, number of elements) of every array that a program computes."""
    return [
        (equation.primitive.name, int(np.prod(variable.aval.shape)))
        for equation in equations(jaxpr)
        for variable in equation.outvars
        if hasattr(variable.aval, "shape")
    ]


@pytest.mark.parametrize("n", [80, 8_000])
def test_cost_does_not_grow_with_the_data(n):
    """No array is longer than n, nothing is sorted, and the compiled program needs the same memory for any N."""
    memory = []
    for n_data in (80_000, 800_000, 80_000_000):
        traced = jax.make_jaxpr(lambda key, n_data=n_data: subset_indices(key, n, n_data))(jax.random.key(0))
        made = made_by(traced.jaxpr)
        assert max(size for _, size in made) <= max(n, 64)
        assert not {name for name, _ in made} & {"sort", "top_k", "random_permutation", "shuffle"}
        lowered = jax.jit(lambda key, n_data=n_data: subset_indices(key, n, n_data)).lower(jax.random.key(0))
        compiled = lowered.compile()
        assert " sort(" not in compiled.as_text()
        memory.append(compiled.memory_analysis().temp_size_in_bytes)
    assert max(memory) <= min(memory) + 64
    assert max(memory) < 64 * n + 4_096
