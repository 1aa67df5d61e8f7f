"""Stochastic-gradient kernels of BlackJAX as samplers of sgtune.

A kernel of BlackJAX asks a function for its gradients. This function is here one of sgtune's gradient estimators, so
that each kernel has a variant with control variates (``-cv``), and its arms advance in lockstep. With e the
``step_size``, T the ``temperature`` and grad an estimate of grad log pi, BlackJAX has

    sgld    theta <- theta + e grad + sqrt(2 e T) N(0, I)
            Step for step `sgtune.samplers.sgld`, with the same normals for the same key.

    sghmc   p ~ N(0, I), then L = ``n_leapfrog`` times, both from the old theta and p:
            theta <- theta + e p
            p <- p - alpha e p + e grad + N(0, e T (2 alpha - e T beta) I)
            The explicit order of `sgtune.samplers.sghmc`, ``as_published``, with its step_size = e^2, v = e p,
            friction = alpha e and noise_estimate = beta e^2 / 2 (T = 1). All L gradients are of one minibatch, there of
            one each. The last is not used, so that L = 1 is a random walk, which is refused.

    sgnht   p ~ N(0, I) and xi = alpha at the start; then, both from the old theta and p,
            theta <- theta + e p
            p <- p - xi e p + e grad + N(0, e T (2 alpha - e T beta) I)
            xi <- xi + e (|p|^2 / D - T)
            `sgtune.samplers.sgnht` with its step_size = e^2, v = e p, thermostat = xi e and friction = alpha e, but for
            the drift: there it is by the new momentum.

So the e of the last two is the time step, the square root of the step size of `sgtune.samplers.sghmc` and
`sgtune.samplers.sgnht`. Invariant densities, as e -> 0 and with exact gradients: pi(theta)^(1/T), for the last two with
N(p | 0, T I). The explicit order gains energy: a direction of curvature c has about e c less friction.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from math import inf
from numbers import Real
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray, PyTree

from sgtune.model.checks import in_single_precision
from sgtune.samplers import SAMPLERS, Sampler, sampler_names
from sgtune.samplers.base import noise_like
from sgtune.samplers.gradients import ESTIMATORS
from sgtune.samplers.sgnht import LARGEST_OF_THERMOSTAT
from sgtune.support.axes import N_LEAPFROG, STEP_SIZE, Axis
from sgtune.support.errors import InputError, check_integer, check_number, import_extra

__all__ = ["from_blackjax"]

LEAPFROGS, FRICTION = "num_integration_steps", "alpha"
"""BlackJAX's names for ``n_leapfrog``, and for the friction of a momentum."""

KICKS_LAST = "blackjax.sgmcmc.sghmc"
"""The kernel whose first drift is by the fresh momentum alone, and whose last kick moves nothing."""

EXPLICIT, LARGEST_EXPLICIT = "blackjax.sgmcmc.", 0.5
"""Kernels with a momentum of these modules gain energy in every step: without friction SGHMC of five leapfrogs leaves
N(0, I) above a step size of 0.47."""

THERMOSTAT = "xi"
"""The name of BlackJAX for a thermostat's start."""


class BlackJAXState(NamedTuple):
    """The chain's position, the kernel's own state, which contains it, and the state of the gradient estimator."""

    position: PyTree
    kernel: Any
    estimator: PyTree


class DiffusionState(NamedTuple):
    """The state of a diffusion with a momentum, which starts as N(0, I); ``xi``: the thermostat, if it has one."""

    position: PyTree
    momentum: PyTree
    xi: Any = None


class _Parts(NamedTuple):
    """A kernel, whatever form it was given in.

    Attributes:
        init: ``(position, rng_key, xi, ...) -> state``, with those parameters that it has.
        build: ``(alpha, ...) -> step``.
        step: what ``build`` makes of its defaults.
        advance: ``(step, rng_key, state, gradient_fn, numbers) -> state``.
        n_first: how many parameters of a step come before the step size.
    """

    init: Callable
    build: Callable
    step: Callable
    advance: Callable
    n_first: int


def from_blackjax(
    kernel: Any, hyperparameters: Mapping[str, float] | None = None, *, name: str | None = None
) -> Sampler:
    """A stochastic-gradient kernel of BlackJAX, or one in its form, as a sampler.

    `sgtune.tune`, `sgtune.sample` and `sgtune.tune_and_sample` take it, with ``gradient=
    sgtune.gradients.control_variate`` or without. They also take its name, which is an entry of
    `sgtune.samplers.SAMPLERS` from now on: ``blackjax-sghmc``, or ``blackjax-sghmc-cv`` with control variates. The
    equations and units of BlackJAX's own kernels are in `sgtune.bridges.blackjax_kernels`.

    Args:
        kernel: one of

            * ``blackjax.sgld``, ``blackjax.sghmc``, ``blackjax.sgnht``, or an object with such an ``init`` and
              ``build_kernel``;
            * a built kernel, ``(rng_key, position, gradient_fn, minibatch, step_size, ...) -> position``;
            * a diffusion of ``blackjax.sgmcmc.diffusions``, built or not. Its momentum goes on from step to step.

            A step has one minibatch, from which ``gradient_fn(position, minibatch)`` takes a gradient of log pi;
            ``minibatch`` itself is None.
        hyperparameters: defaults other than the kernel's own, by BlackJAX's names, such as ``{"alpha": 0.1}``. A
            parameter of ``build_kernel``, of ``init`` or of the kernel whose default is a number is a hyperparameter of
            the sampler: `sgtune.sample` takes it by name, and a grid may list it. One without a default must be given
            here, but for the thermostat ``xi``, which starts at ``alpha``. ``num_integration_steps`` of a kernel is
            ``n_leapfrog``; other parameters that are annotated as ``int`` are fixed by this call.
        name: in results; None: that of BlackJAX's module, or of the function, after ``blackjax-``. A sampler that an
            earlier call gave this name is replaced.

    Returns:
        The sampler. Its ``step_size_power`` is 2 if it has leapfrogs or a friction ``alpha``: ``step_size`` is then the
        time step of a momentum p ~ N(0, I).

    Raises:
        InputError: BlackJAX is not installed; the kernel has another form, is bound to a gradient already, or needs
            more of a density than gradients; a hyperparameter is not the kernel's, has no default, or is no number; or
            the name is that of another sampler.
    """
    blackjax = import_extra("blackjax", "blackjax")
    if isinstance(kernel, blackjax.base.SamplingAlgorithm):
        raise InputError(
            "kernel: it has a gradient already; give blackjax.sgld, not blackjax.sgld(gradient_fn)"
        )
    parts = _parts_of(kernel, hyperparameters or {})
    name = _checked_name(name, kernel)
    # In this order, because a default may depend on those before it.
    of_build = _numbers_of(parts.build)
    of_init = _numbers_of(parts.init, "position", "rng_key")
    of_step = _numbers_of(parts.step, STEP_SIZE.name, LEAPFROGS, skip=parts.n_first)
    integers = set().union(*map(_integers_of, (parts.build, parts.init, parts.step)))
    defaults = _defaults(name, {**of_build, **of_init, **of_step}, hyperparameters or {}, integers)
    fixed = {each: int(value) for each, value in defaults.items() if each in integers}
    takes_key = "rng_key" in inspect.signature(parts.init).parameters
    has_leapfrog = LEAPFROGS in inspect.signature(parts.step).parameters

    def init(key, position, estimator, target, numbers):
        if jax.tree.leaves(estimator):
            raise InputError(
                "gradient: an estimator with a state is not allowed; BlackJAX has no place for it"
            )
        own = {"rng_key": key} if takes_key else {}
        own |= {each: (numbers | fixed)[each] for each in of_init}
        made = jax.tree.map(lambda leaf: in_single_precision(jnp.asarray(leaf)), parts.init(position, **own))
        return BlackJAXState(position, made, estimator)

    def step(key, state, target, numbers):
        # Under jax_enable_x64 the kernel's noise has 64 bits, and so has all that it carries; chains have 32.
        def gradient_fn(position, minibatch):
            return _wide(target.gradient(_like(state.position, position), 0, state.estimator)[0])

        own = {LEAPFROGS: numbers[N_LEAPFROG.name]} if has_leapfrog else {}
        numbers = numbers | fixed
        own |= {each: numbers[each] for each in (STEP_SIZE.name, *of_step)}
        built = parts.build(**{each: numbers[each] for each in of_build})
        made = _like(state.kernel, parts.advance(built, key, _wide(state.kernel), gradient_fn, own))
        # The kernel's state is the position, or has one.
        is_position = jax.tree.structure(made) == jax.tree.structure(state.position)
        return BlackJAXState(made if is_position else made.position, made, state.estimator)

    has_momentum = has_leapfrog or FRICTION in defaults
    is_explicit = has_momentum and parts.step.__module__.startswith(EXPLICIT)
    sampler = Sampler(
        init,
        step,
        tuple(
            Axis(each, default, at_least=0 if parts.step.__module__.startswith(EXPLICIT) else None)
            for each, default in defaults.items()
            if each not in fixed
        ),
        has_leapfrog=has_leapfrog,
        least_leapfrog=2 if parts.step.__module__ == KICKS_LAST else 1,
        static_leapfrog=True,
        step_size_power=2 if has_momentum else 1,
        largest_step=LARGEST_EXPLICIT if is_explicit else 2.0,
        largest_of_thermostat=LARGEST_OF_THERMOSTAT**0.5 if THERMOSTAT in of_init else inf,
    )
    SAMPLERS[name] = sampler
    return sampler


def _checked_name(name: str | None, kernel: Any) -> str:
    """``name``, or one made of that of BlackJAX's module or of the function."""
    if name is None:
        made_by = getattr(kernel, "build_kernel", kernel)
        if not hasattr(made_by, "__name__"):
            raise InputError(f"name: None is not allowed for {made_by!r}, which has no name of its own")
        module, _, last = made_by.__module__.rpartition(".")
        if module != "blackjax.sgmcmc":
            last = made_by.__name__
        elif last == "diffusions":
            # A built diffusion is a function within one of this name.
            last = f"{made_by.__qualname__.partition('.')[0]}-diffusion"
        name = f"blackjax-{last.replace('_', '-')}"
    # Those of an earlier call may be replaced.
    is_ours = name in SAMPLERS and SAMPLERS[name].init.__module__ == __name__
    if name in sampler_names() and not is_ours:
        raise InputError(f"name: {name!r} is not allowed; it is that of another sampler")
    if name.rpartition("-")[2] in filter(None, ESTIMATORS):
        raise InputError(f"name: {name!r} is not allowed; its ending is that of a gradient estimator")
    return name


def _parts_of(kernel: Any, given: Mapping[str, float]) -> _Parts:
    """The parts of a kernel or a diffusion, or of what builds one, from parameters that are ``given`` where it has no
    defaults.

    Raises:
        InputError: it has another form.
    """
    if hasattr(kernel, "init") and hasattr(kernel, "build_kernel"):
        init, build = kernel.init, kernel.build_kernel
    elif callable(kernel):
        is_built = STEP_SIZE.name in inspect.signature(kernel).parameters
        # The state of a kernel of BlackJAX is that of its module.
        is_theirs = kernel.__module__.startswith("blackjax.sgmcmc.")
        init = getattr(sys.modules[kernel.__module__], "init", _as_it_is) if is_theirs else _as_it_is
        build = (lambda: kernel) if is_built else kernel
    else:
        raise InputError(
            f"kernel: {kernel!r} is not allowed; it must be blackjax.sgld, sghmc, sgnht, or like one"
        )
    needed = [name for name, default in _numbers_of(build).items() if default is None]
    is_complete = all(name in given for name in needed)
    step = build(**{name: given[name] for name in needed}) if is_complete else None
    names = list(inspect.signature(step).parameters) if callable(step) else []
    if "logdensity_grad" in names:
        held = names[1 : names.index("logdensity_grad")]
        if held == list(DiffusionState._fields[: len(held)]):
            init = (_as_it_is, _with_momentum, _with_thermostat)[len(held) - 1]
            return _Parts(init, build, step, _advance_diffusion, len(held) + 2)
    if names[4:5] != [STEP_SIZE.name]:
        made_by = getattr(kernel, "build_kernel", kernel)
        shown = f"{made_by.__module__}.{getattr(made_by, '__qualname__', made_by)}"
        raise InputError(
            f"kernel: {shown} is not allowed; it must be or build (rng_key, position, gradient_fn, minibatch, "
            "step_size, ...) -> position, with no more of a density than gradients"
        )
    return _Parts(init, build, step, _advance_kernel, 4)


def _wide(tree: PyTree) -> PyTree:
    """With 64 bits where JAX has them."""
    most = jnp.result_type(float)
    return jax.tree.map(lambda leaf: leaf.astype(most) if leaf.dtype == jnp.float32 else leaf, tree)


def _like(wanted: PyTree, tree: PyTree) -> PyTree:
    return jax.tree.map(lambda old, leaf: leaf.astype(old.dtype), wanted, tree)


def _as_it_is(position: PyTree) -> PyTree:
    return position


def _with_momentum(position: PyTree, rng_key: PRNGKeyArray) -> DiffusionState:
    return DiffusionState(position, noise_like(rng_key, position))


def _with_thermostat(position: PyTree, rng_key: PRNGKeyArray, xi: Any) -> DiffusionState:
    return DiffusionState(position, noise_like(rng_key, position), xi)


def _advance_kernel(
    kernel: Callable, key: PRNGKeyArray, state: Any, gradient_fn: Callable, numbers: dict
) -> Any:
    return kernel(key, state, gradient_fn, None, **numbers)


def _advance_diffusion(
    diffusion: Callable, key: PRNGKeyArray, state: Any, gradient_fn: Callable, numbers: dict
) -> Any:
    if not isinstance(state, DiffusionState):
        return diffusion(key, state, gradient_fn(state, None), **numbers)
    values = [value for value in state if value is not None]
    return DiffusionState(*diffusion(key, *values, gradient_fn(state.position, None), **numbers))


def _numbers_of(function: Callable, *known: str, skip: int = 0) -> dict[str, float | None]:
    """The parameters of a function that are numbers, with their defaults: None for one without a default."""
    found = {}
    for name, parameter in list(inspect.signature(function).parameters.items())[skip:]:
        is_missing = parameter.default is parameter.empty
        is_number = isinstance(parameter.default, Real) and not isinstance(parameter.default, bool)
        if name not in known and (is_missing or is_number):
            found[name] = None if is_missing else float(parameter.default)
    return found


def _integers_of(function: Callable) -> set[str]:
    """The parameters of a function that are annotated as integers."""
    parameters = inspect.signature(function).parameters
    return {name for name, parameter in parameters.items() if parameter.annotation in (int, "int")}


def _defaults(
    name: str, own: Mapping[str, float | None], given: Mapping[str, float], integers: set[str]
) -> dict[str, Any]:
    """The kernel's ``own`` defaults, with those that are ``given``."""
    defaults = dict(own)
    if FRICTION in defaults and defaults.get("xi", 0.0) is None:
        defaults["xi"] = _friction
    for each, value in given.items():
        if each not in defaults:
            allowed = ", ".join(defaults) or "none"
            instead = "; give n_leapfrog to the sampler" if each == LEAPFROGS else ""
            raise InputError(f"hyperparameters: {each!r} is not allowed; {name} has: {allowed}{instead}")
        defaults[each] = (
            check_integer(each, value, at_least=-(2**31)) if each in integers else check_number(each, value)
        )
    for each, default in defaults.items():
        if default is None:
            raise InputError(f"hyperparameters: {each!r} of {name} has no default; it must be given")
    return defaults


def _friction(numbers: Mapping[str, float]) -> float:
    return numbers[FRICTION]
