"""The samplers on a Gaussian, along one eigenvector of its Hessian: scalar linear recursions.

The gradient at x is -lambda x, lambda the curvature, with minibatch noise of variance q. From sample to sample each
sampler is then exactly (SGLD; SGHMC, which redraws its momentum) or nearly (SGNHT) an AR(1) process,

    x <- phi x + noise,    stationary variance S = offset + gain q.

SGLD        phi = 1 - h lambda, noise of variance 2 h + h^2 q.
SGHMC       L leapfrogs, each linear in (x, v) with fresh noise, composed; v ~ N(0, h) is noise, too.
SGNHT       with a constant thermostat alpha, its stationary value (`settled_friction`) or, because settling takes
            alpha / h steps, its average over a run (`run_warmth`); linear in (x, v):
            Var v = (2 a h + h^2 q) / (alpha (2 - alpha - h lambda / 2)),  S = Var v (2 - alpha) / (2 h lambda).
            phi >= 0 is chosen so that the AR(1) process has the same sum of squared autocorrelations. Unstable above
            `sgtune.samplers.sgnht.LARGEST_OF_THERMOSTAT`, where alpha is far from constant.
SGNHT-Shang is SGNHT in other units. SGHMC-Shang keeps its momentum, too: it is the same with alpha = a, and it injects
less noise by the gradient's noise, so q has no effect where h q / 2 <= a (h its step size squared, S the exact
covariance). Its predictions are for the full covariance only.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgtune.samplers import in_units_of_steps, resolve_sampler, sampler_names
from sgtune.samplers.gradients import control_variate
from sgtune.samplers.sgnht import LARGEST_OF_THERMOSTAT
from sgtune.support.axes import FRICTION, FRICTION_RATE, NOISE_ESTIMATE, Arm
from sgtune.support.errors import InputError
from sgtune.theory.averages import oscillation_of_run, variance_of_run

__all__ = [
    "Recursion",
    "check_known",
    "depends_on_noise",
    "has_control_variate",
    "recursion_of",
    "settled_friction",
]

Vector = Float[np.ndarray, " d"]


class Recursion(NamedTuple):
    """x <- phi x + noise, of stationary variance ``offset + gain * q`` where the gradient has noise of variance q.

    Both are infinite where the recursion is unstable.

    Attributes:
        approach: phi of an AR(1) process that approaches its spread from the mode as the chain does, and whose draws'
            mean has the same variance; phi itself except for SGNHT. There it is 1 - h lambda / alpha, because in a run
            (the virial) lambda mean(x^2) = mean(v^2) / h - alpha x_n^2 / (2 h n) - x_n v_n / (h n).
            Where this is below 0 a chain oscillates: it soon reaches its spread, although it keeps its energy for
            1 / alpha steps.
        frequency: of the oscillation of SGNHT, sqrt(h lambda); 0 for others.
    """

    phi: Vector
    offset: Vector
    gain: Vector
    approach: Vector
    frequency: Vector

    def run(self, n_steps: int) -> tuple[Vector, Vector]:
        """E and Var of the variance of this many draws from the mode on, in units of the stationary variance."""
        mean, variance = variance_of_run(self.phi, n_steps)
        if not self.frequency.any():
            return mean, variance
        relative = np.divide(variance, mean**2, out=np.zeros_like(mean), where=mean > 0)
        reached = variance_of_run(self.approach, n_steps)[0]
        reached = np.minimum(reached, oscillation_of_run(self.frequency, n_steps))
        return reached, relative * reached**2


def _ar1(phi: Vector, offset: Vector, gain: Vector) -> Recursion:
    """From the variance of the noise itself."""
    left = (1 - phi) * (1 + phi)
    with np.errstate(divide="ignore", invalid="ignore"):
        offset, gain = (np.where(left > 0, part / left, np.inf) for part in (offset, gain))
    return Recursion(phi, offset, gain, phi, np.zeros_like(phi))


def _sgld(arm: Arm, curvature: Vector, noise: Vector, n_steps: int | None) -> Recursion:
    h = arm.step_size
    return _ar1(1 - h * curvature, np.full_like(curvature, 2 * h), np.full_like(curvature, h**2))


def _sghmc(order: str) -> Callable:
    """Of one order of drift and kick (`sgtune.samplers.sghmc`)."""

    def recursion(arm: Arm, curvature: Vector, noise: Vector, n_steps: int | None) -> Recursion:
        h = arm.step_size
        friction = arm.get(FRICTION.name, FRICTION.default)
        injected = 2 * (friction - arm.get(NOISE_ESTIMATE.name, NOISE_ESTIMATE.default)) * h
        zero, one = np.zeros_like(curvature), np.ones_like(curvature)
        # The coefficients of the first x in (x, v); variances of x, of (x, v) and of v, without gradient noise and
        # for gradient noise of variance one.
        x, v = one, zero
        moments = [(zero, zero, h * one), (zero, zero, zero)]
        for i in range(arm.n_leapfrog):
            length = 0.5 if order == "leapfrog" and i == 0 else 1.0
            pull, kept = length * h * curvature, 1 - length * friction
            # (x, v) <- (xx x + xv v, vx x + vv v) + noise * (nx, 1)
            if order == "leapfrog":
                xx, xv, vx, vv, nx = 1 - pull, kept, -pull, kept, 1.0
            elif order == "chen":
                xx, xv, vx, vv, nx = 1.0, 1.0, -pull, kept - pull, 0.0
            else:
                xx, xv, vx, vv, nx = 1.0, 1.0, -pull, kept, 0.0
            x, v = xx * x + xv * v, vx * x + vv * v
            moments = [
                (
                    xx**2 * s + 2 * xx * xv * c + xv**2 * p + nx * nx * fresh,
                    xx * vx * s + (xx * vv + xv * vx) * c + xv * vv * p + nx * fresh,
                    vx**2 * s + 2 * vx * vv * c + vv**2 * p + fresh,
                )
                for (s, c, p), fresh in zip(moments, (length * injected, (length * h) ** 2), strict=True)
            ]
        return _ar1(x, moments[0][0], moments[1][0])

    return recursion


def settled_friction(arm: Arm, curvature: Vector, noise: Vector, warmth: float = 1.0) -> float:
    """alpha at which the mean over directions of Var v is ``warmth`` * h; infinite if there is none.

    At a warmth of 1 SGNHT's thermostat stays there. It is the least root of
    F(alpha) = mean[(2 a + h q) / (2 - alpha - h lambda / 2)] / warmth - alpha, which is convex: Newton's method from
    below, where F > 0, does not step over it.
    """
    h = arm.step_size
    heat = (2 * arm.get(FRICTION.name, FRICTION.default) + h * noise) / warmth
    alpha, highest = float(np.mean(heat)) / 2, float(2 - h * curvature.max() / 2)
    for _ in range(100):
        if alpha >= highest:
            return np.inf
        room = 2 - alpha - h * curvature / 2
        excess, slope = float(np.mean(heat / room)) - alpha, float(np.mean(heat / room**2)) - 1
        if excess <= 1e-12 * alpha:
            return alpha
        if slope >= 0:
            return np.inf
        alpha -= excess / slope
    return alpha


def run_warmth(h: float, start: float, settled: float, n_steps: int) -> float:
    """Mean over a run of |v|^2 / (D h): 1 + (alpha_n - alpha_0) / (n h), from the thermostat's update.

    While the thermostat settles the chain is too hot (or too cold). Kinetic energy follows the thermostat: |v|^2 / D is
    about h settled / alpha, so d alpha / dt = h (settled / alpha - 1), and
    h t = start - alpha_t + settled log((settled - start) / (settled - alpha_t)).
    """
    gap = settled - start
    if n_steps < 1 or abs(gap) < 1e-6 * settled:
        return 1.0
    low, high = 0.0, 1 - 1e-12
    for _ in range(60):
        # The share of the gap that is closed.
        share = (low + high) / 2
        late = -gap * share - settled * np.log1p(-share) > h * n_steps
        low, high = (low, share) if late else (share, high)
    # Noise adds kinetic energy at most at 2 h gap a step, and half of it soon becomes potential energy.
    return 1 + gap * min(low / (n_steps * h), n_steps / 2)


def _sgnht(arm: Arm, curvature: Vector, noise: Vector, n_steps: int | None) -> Recursion:
    h, friction = arm.step_size, arm.get(FRICTION.name, FRICTION.default)
    # With a tolerance for the rounding of a step size in other units.
    alpha = settled_friction(arm, curvature, noise) if h <= LARGEST_OF_THERMOSTAT * (1 + 1e-9) else np.inf
    if n_steps is not None and np.isfinite(alpha):
        alpha = settled_friction(arm, curvature, noise, max(run_warmth(h, friction, alpha, n_steps), 0.1))
    return _with_momentum(alpha, h * curvature, 2 * friction * h, h**2)


def _with_momentum(alpha: float, pull: Vector, injected: float | Vector, gain: float | Vector) -> Recursion:
    """v <- (1 - alpha) v - pull x + noise of variance injected + gain q, x <- x + v; with pull = h lambda."""
    unstable = np.full_like(pull, np.inf)
    if not 0 < alpha < 2 or not np.isfinite(alpha) or not (2 - alpha - pull / 2 > 0).all():
        return Recursion(unstable, unstable, unstable, unstable, unstable)
    of_x = (2 - alpha) / (2 * pull * alpha * (2 - alpha - pull / 2))
    squares = _sum_of_squares(1 - pull, 1 - alpha, pull, pull / (2 - alpha))
    # (1 + phi^2) / (1 - phi^2) is the sum over all lags of an AR(1) process.
    phi = np.sqrt(np.maximum((squares - 1) / (squares + 1), 0.0))
    approach = np.maximum(1 - pull / alpha, 0.0)
    return Recursion(phi, injected * of_x, gain * of_x, approach, np.sqrt(pull))


def _in_units_of_steps(arm: Arm) -> Arm:
    return Arm(**in_units_of_steps({FRICTION.name: FRICTION_RATE.default, **arm}))


def _sgnht_shang(arm: Arm, curvature: Vector, noise: Vector, n_steps: int | None) -> Recursion:
    return _sgnht(_in_units_of_steps(arm), curvature, noise, n_steps)


def _sghmc_shang(arm: Arm, curvature: Vector, noise: Vector, n_steps: int | None) -> Recursion:
    arm = _in_units_of_steps(arm)
    h, friction = arm.step_size, arm["friction"]
    is_clipped = h * noise / 2 > friction
    injected, gain = np.where(is_clipped, 0.0, 2 * friction * h), np.where(is_clipped, h**2, 0.0)
    return _with_momentum(friction, h * curvature, injected, gain)


def _sum_of_squares(xx: Vector, kept: float, pull: Vector, cross: Vector) -> Vector:
    """Sum over all lags of rho_k^2, where rho_k is x's share of M^k (1, c): x <- xx x + kept v, v <- kept v - pull x.

    c = Cov(x, v) / S = Var v / (2 S). The moments (x^2, x v, v^2) go over into each other linearly by K, and their sum
    over k >= 0 is (I - K)^-1 (1, c, c^2).
    """
    # I - K, row by row, and Cramer's rule for the first unknown.
    a, b, c = 1 - xx**2, -2 * kept * xx, -(kept**2)
    d, e, f = pull * xx, 1 - kept * (xx - pull), -(kept**2)
    g, h, i = -(pull**2), 2 * kept * pull, 1 - kept**2
    y, z = cross, cross**2
    determinant = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    first = (e * i - f * h) - b * (y * i - f * z) + c * (y * h - e * z)
    return 2 * first / determinant - 1


KNOWN: dict[str, Callable[[Arm, Vector, Vector, int | None], Recursion]] = {
    "sgld": _sgld,
    "sghmc": _sghmc("leapfrog"),
    "sghmc-chen": _sghmc("chen"),
    "sghmc-as-published": _sghmc("as published"),
    "sgnht": _sgnht,
    "sgnht-shang": _sgnht_shang,
    "sghmc-shang": _sghmc_shang,
}
"""``(arm, curvature, noise, n_steps) -> Recursion`` by the name of the sampler in `SAMPLERS`. The noise and the steps
affect only a thermostat's value; the noise also affects which directions are clipped."""


def _base(sampler: str) -> str:
    return sampler.removesuffix("-cv")


def check_known(sampler: str) -> str:
    """``sampler`` if its recursion is known, or an `InputError`."""
    if _base(sampler) not in KNOWN or sampler not in sampler_names():
        known = [name for name in sampler_names() if _base(name) in KNOWN]
        raise InputError(
            f"sampler: {sampler!r} is not known to the theory of linear recursions; it must be one of: "
            f"{', '.join(known)}"
        )
    return sampler


def depends_on_noise(sampler: str) -> bool:
    """Whether a sampler's recursion depends on the noise: by its thermostat, or by clipping."""
    return _base(sampler) in ("sgnht", "sgnht-shang", "sghmc-shang")


def has_control_variate(sampler: str) -> bool:
    """Whether its gradients have control variates, which leave no noise at the mode."""
    return resolve_sampler(sampler)[1] is control_variate


def recursion_of(
    sampler: str, arm: Arm, curvature: Vector, noise: Vector, n_steps: int | None = None
) -> Recursion:
    """The recursion of ``arm`` along each direction.

    Args:
        curvature: lambda > 0.
        noise: q, the variance of a gradient.
        n_steps: of a run that starts with SGNHT's thermostat at the arm's friction; its average temperature is used
            for the whole run. None: a thermostat that has settled.

    Raises:
        InputError: the sampler's recursion is not known.
    """
    return KNOWN[_base(check_known(sampler))](arm, curvature, noise, n_steps)
