"""Predictions for an arm on a posterior close to Gaussian: its stationary spread, and its error after n steps.

Along the eigenvectors of the Hessian H of -log pi at the mode the samplers are scalar linear recursions
(`sgtune.theory.recursions`). Along direction i the noise of a minibatch of n of N data has the variance

    q_i = N (N - n) / n (C_i + sum over k of T_ik S_k)

with C_i the variance over the data of one datum's gradient at the mode, and S the spread of the chain: away from the
mode the data's Hessians H_j differ, T_ik = Var over j of (u_i' H_j u_k). With control variates C = 0. Correlations of
the noise between directions affect variances only through the last sum, where they are neglected.

Limit theory: arXiv 2606.00293.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgtune.samplers import resolve_sampler
from sgtune.support.axes import BATCH_SIZE, Arm
from sgtune.support.errors import InputError, check_integer
from sgtune.theory.averages import sd_error
from sgtune.theory.recursions import (
    Recursion,
    check_known,
    depends_on_noise,
    has_control_variate,
    recursion_of,
)

__all__ = [
    "Directions",
    "check_directions",
    "expected_errors",
    "expected_run",
    "stationary_variances",
]

ROUNDS = 50
"""The largest number of iterations that alternate between the noise at a spread and a thermostat's friction at it."""


class Directions(NamedTuple):
    """A posterior close to Gaussian, along the eigenvectors of its Hessian, or its coordinates where only the diagonal
    is known.

    Attributes:
        curvature: eigenvalues of H, > 0; the posterior's variances are one over them.
        noise: C_i >= 0.
        n_data: N.
        noise_slopes: T, ``(d, d)``; or ``(d,)`` where d is large: the variance over the data of the change of one
            datum's gradient from the mode to points with the posterior's own spread. It is then scaled by the mean over
            all directions k of S_k / (1 / lambda_k), or by the direction's own if that is larger: where a few rows act
            along a few directions, the mean hides that their noise feeds itself. An arm
            is unstable if one direction is: a bound, as no eigenvalue of T is above the largest row sum. None: no such
            noise, so gradients with control variates are exact.
    """

    curvature: Float[np.ndarray, " d"]
    noise: Float[np.ndarray, " d"]
    n_data: int
    noise_slopes: Float[np.ndarray, "d d"] | Float[np.ndarray, " d"] | None = None


def check_directions(directions: Directions) -> Directions:
    """``directions`` in float64.

    Raises:
        InputError: numbers that are not finite, shapes that do not agree, a curvature that is not > 0, noise < 0.
    """
    curvature, noise = (np.asarray(values, np.float64) for values in directions[:2])
    slopes = directions.noise_slopes
    slopes = None if slopes is None else np.asarray(slopes, np.float64)
    d = curvature.size
    given = [("curvature", curvature, [(d,)]), ("noise", noise, [(d,)])]
    given += [("noise_slopes", slopes, [(d,), (d, d)])] if slopes is not None else []
    for name, values, shapes in given:
        if values.shape not in shapes or d == 0:
            raise InputError(f"{name}: shape {values.shape} is not allowed; it must be {shapes[-1]}, d >= 1")
        if not (np.isfinite(values).all() and (values >= 0).all()) or (
            name == "curvature" and not values.all()
        ):
            least = "> 0" if name == "curvature" else ">= 0"
            raise InputError(f"{name}: {values.min():g} is not allowed; all must be finite and {least}")
    check_integer("n_data", directions.n_data, at_least=1)
    return Directions(curvature, noise, directions.n_data, slopes)


def _spread(
    sampler: str, arm: Arm, directions: Directions, n_steps: int | None
) -> tuple[Recursion, Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """The recursion of an arm, q, and S; n_steps: the noise is for the spread of the draws of this many steps."""
    n = arm.batch_size
    factor = directions.n_data * (directions.n_data - n) / n
    at_mode = factor * directions.noise * (0.0 if has_control_variate(sampler) else 1.0)
    noise = at_mode
    recursion = recursion_of(sampler, arm, directions.curvature, noise, n_steps)
    for _ in range(ROUNDS if directions.noise_slopes is not None and factor > 0 else 0):
        if not np.isfinite(recursion.offset).all():
            break
        share = 1.0 if n_steps is None else recursion.run(n_steps)[0]
        before, noise = noise, _settled_noise(recursion, at_mode, factor, share, directions)
        if not np.isfinite(noise).all():
            return recursion, noise, noise
        # Without a thermostat that depends on the noise, one round is enough.
        if not depends_on_noise(sampler) or np.allclose(noise, before, rtol=1e-4, atol=0):
            break
        recursion = recursion_of(sampler, arm, directions.curvature, noise, n_steps)
    if not np.isfinite(recursion.offset).all():
        return recursion, noise, recursion.offset
    return recursion, noise, recursion.offset + recursion.gain * noise


def _settled_noise(
    recursion: Recursion,
    at_mode: np.ndarray,
    factor: float,
    share: np.ndarray | float,
    directions: Directions,
) -> Float[np.ndarray, " d"]:
    """Solve the linear q = at_mode + factor T (share S), S = offset + gain q. Infinite where the noise grows without
    bound.

    With T >= 0 this is the case unless the solution S is positive, or 0: one draw alone has no spread.
    """
    offset, gain = share * recursion.offset, share * recursion.gain
    slopes = directions.noise_slopes
    if slopes.ndim == 1:
        feedback = factor * directions.curvature * gain * slopes
        if not (feedback < 1).all():
            return np.full_like(at_mode, np.inf)
        first = directions.curvature * (offset + gain * at_mode)
        own, mean = first / (1 - feedback), first.mean() / (1 - feedback.mean())
        return at_mode + factor * slopes * np.maximum(own, mean)
    try:
        spread = np.linalg.solve(np.eye(len(gain)) - factor * gain[:, None] * slopes, offset + gain * at_mode)
    except np.linalg.LinAlgError:
        return np.full_like(at_mode, np.inf)
    if not (spread >= 0).all():
        return np.full_like(at_mode, np.inf)
    return at_mode + factor * slopes @ spread


def stationary_variances(sampler: str, arm: Arm, directions: Directions) -> Float[np.ndarray, " d"]:
    """The variances along the directions of the arm's stationary density; all infinite where it is unstable.

    Raises:
        InputError: the sampler's recursion is not known, a number of the arm is missing or not allowed, or as
            `check_directions`.
    """
    directions = check_directions(directions)
    for axis in resolve_sampler(check_known(sampler))[0].axes:
        if axis.name in arm or axis.default is None:
            axis.check(
                arm.get(axis.name), at_most=directions.n_data if axis.name == BATCH_SIZE.name else None
            )
    variances = _spread(sampler, arm, directions, None)[2]
    return variances if np.isfinite(variances).all() else np.full_like(variances, np.inf)


def expected_run(
    sampler: str, arm: Arm, directions: Directions, n_steps: int
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """E and Var of sd_hat^2 / sd^2 along each direction, for ``n_steps`` draws from the mode on; infinite if unstable.

    Raises:
        InputError: as `expected_errors`.
    """
    run = _run(
        check_known(sampler), arm, check_directions(directions), check_integer("n_steps", n_steps, at_least=0)
    )
    return run[:2]


def _run(
    sampler: str, arm: Arm, directions: Directions, n_steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """E and Var of sd_hat^2 / sd^2, and the phi of the recursion."""
    infinite = np.full_like(directions.curvature, np.inf)
    if not np.isfinite(stationary_variances(sampler, arm, directions)).all():
        return infinite, infinite, infinite
    recursion, _, spread = _spread(sampler, arm, directions, n_steps)
    mean, variance = recursion.run(n_steps)
    ratio = spread * directions.curvature
    return ratio * mean, ratio**2 * variance, recursion.phi


def expected_errors(
    sampler: str, arms: Sequence[Arm], directions: Directions, n_steps: Sequence[int]
) -> Float[np.ndarray, " n_arms"]:
    """sqrt(mean over directions of E[(sd_hat / sd - 1)^2]) of ``n_steps[i]`` draws of each arm, started at the mode.

    sd_hat is the sd of the draws about their mean and sd = curvature^-1/2, so this predicts `xi_white` where the
    posterior is Gaussian. It is 1 for a chain that does not move, or makes no step, and infinite for an unstable one.
    E and Var of sd_hat^2 are exact for SGLD and SGHMC with noise that does not grow with the spread
    (`sgtune.theory.averages`). SGNHT's thermostat settles in alpha / h steps, and keeps the total energy of all
    directions near its target: its measured errors were within 20% of the predicted ones, and within 25% in runs of
    less than a few 1 / alpha steps.

    Raises:
        InputError: the sampler's recursion is not known, ``n_steps`` is not one integer >= 0 for each arm, a number of
            an arm is missing or not allowed, or as `check_directions`.
    """
    check_known(sampler)
    directions = check_directions(directions)
    if len(n_steps) != len(arms):
        raise InputError(f"n_steps: {len(n_steps)} given for {len(arms)} arms; it must be one for each")
    errors = np.empty(len(arms))
    for place, (arm, n) in enumerate(zip(arms, n_steps, strict=True)):
        mean, variance, phi = _run(sampler, arm, directions, check_integer("n_steps", n, at_least=0))
        errors[place] = np.sqrt(np.mean(sd_error(mean, variance, phi))) if np.isfinite(mean).all() else np.inf
    return errors
