"""Coordinates of a posterior from its curvature, and the posterior in them (`sgtune.model.preconditioner`)."""

from dataclasses import replace
from math import nan

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from sgtune.mode.curvature import LARGEST_FACTOR, laplace_factor, laplace_scale
from sgtune.mode.find import MapResult, hutchinson_diagonal, map_position, map_result
from sgtune.model import Found, Model
from sgtune.model.positions import flatten, unflatten
from sgtune.model.posterior import LARGE_DIMENSION, hessian_products, negative_hessian, scores
from sgtune.model.preconditioner import Preconditioner, check_factor
from sgtune.support.errors import InputError, check_choice

__all__ = [
    "PRECONDITIONERS",
    "check_curvature",
    "check_preconditioner",
    "laplace_preconditioner",
    "local_factor",
    "lower_triangle",
    "precondition",
    "resolve_preconditioner",
]

PRECONDITIONERS = ("laplace", "none")
"""Names of preconditioners; others are arrays or objects."""

ROUNDING = 0.05
"""In the coordinates of an exact factor the Hessian is the identity. Float32 leaves a larger error where directions
have very different scales; the factor is then corrected by the Hessian in its own coordinates."""

MOST_CORRECTIONS = 3

HESSIAN = "negative Hessian at 0"
"""The name of this matrix among the arrays of a preconditioned model."""

NEARNESS, N_NEAR, LARGEST_CHANGE = 0.3, 16, 30.0
"""See `check_curvature`."""

FARTHEST = 0.1
"""A mode may be this many sds times sqrt(D) away, as scores there say; posterior draws are at about sqrt(D)."""

NAME = "preconditioner"
"""Of the argument, in error messages."""


def precondition(model: Model, preconditioner: Preconditioner | None) -> Model:
    """The same posterior over the coordinates z of ``preconditioner``, theta = c + L z; ``model`` itself if it is None.

    A model of its own, whose position is z, ``(D,)``: samplers, scores, tuners and theory see the density pi(c + L z).
    Its mode is taken to be z = 0, that is c, and its Laplace scale to be 1. ``predict`` and ``functionals`` are
    still functions of theta. Another call with the preconditioner of the last one returns the same object.

    Raises:
        InputError: the preconditioner has another D than the model, or ``model`` has one already.
    """
    if preconditioner is None:
        return model
    if model.preconditioner is not None:
        raise InputError(f"model: {model.name!r} has a preconditioner already; give its original")
    if preconditioner.dimension != model.dimension:
        raise InputError(
            f"preconditioner: D={preconditioner.dimension} is not allowed; {model.name!r} has D={model.dimension}"
        )
    kept = model.found.preconditioned
    if preconditioner not in kept:
        # One at a time: each has constants on the device.
        kept.clear()
        d = model.dimension
        ones = np.ones(d) if preconditioner.factor.ndim == 1 else np.eye(d)
        ones.setflags(write=False)
        kept[preconditioner] = replace(
            model,
            data_dir=None,
            preconditioner=preconditioner,
            original=model,
            found=Found(
                position_shape=jax.ShapeDtypeStruct((d,), jnp.float32),
                mode=MapResult(jnp.asarray(np.zeros(d, np.float32)), nan, 0.0, True, 0, nan),
                laplace=ones if d <= LARGE_DIMENSION else np.ones(d),
                at_mode={"laplace_factor": ones},
            ),
        )
    return kept[preconditioner]


def laplace_preconditioner(model: Model) -> Preconditioner:
    """The coordinates of the Laplace approximation: c is the MAP, and P the inverse of the Hessian H of -log pi there.

    D <= 2,000: P = H^-1, from 2 D to 4 D products of H with a vector over all data, and 17 scores (`check_curvature`).
    Above: the diagonal of H alone (`sgtune.mode.curvature.laplace_scale`), without that check. The MAP is found first
    if necessary.

    Raises:
        InputError: the search for the MAP did not converge, or up to D = 2,000 H is not positive definite there, or log
            pi has kinks (`check_curvature`).
    """
    found = map_result(model)
    if found.doubt:
        raise InputError(f"preconditioner: the MAP of {model.name!r} was not found: {found.doubt}")
    mode = flatten(map_position(model))
    if model.dimension > LARGEST_FACTOR:
        return Preconditioner(mode, laplace_scale(model))
    factor = laplace_factor(model)
    for _ in range(MOST_CORRECTIONS if factor.ndim == 2 else 0):
        seen = precondition(model, Preconditioner(mode, factor))
        hessian = negative_hessian(seen, np.zeros(model.dimension, np.float32))
        if np.abs(hessian - np.eye(len(mode))).max() < ROUNDING:
            check_curvature(model, mode, factor)
            # A pilot needs it, and it takes D products with a vector over all data.
            seen.found.at_mode[HESSIAN] = hessian
            return seen.preconditioner
        try:
            # The factor of P = L H^-1 L', from the Hessian H in the coordinates of L.
            factor = lower_triangle(np.linalg.solve(np.linalg.cholesky(hessian), factor.T).T)
        except np.linalg.LinAlgError:  # H is not positive definite
            break
    raise InputError(
        f"preconditioner: -log pi of {model.name!r} is not convex at the MAP, or its scale is beyond float32"
    )


def check_curvature(
    model: Model, mode: Float[np.ndarray, " D"], root: Float[np.ndarray, "D D"] | Float[np.ndarray, " D"]
) -> None:
    """Check that scores near the mode change as the curvature there says, and that those at the mode are small.

    A log-likelihood that is linear but for kinks, such as Laplace's, has gradients that change and no curvature: the
    Hessian at the mode has the prior's alone, and its sds may be thousands of times too large. With z a normal vector
    of sd 0.3 in the sds of the curvature, and s the change of the score, -E[z_i s_i] / 0.3^2 is about 1 in each
    direction.

    Args:
        mode: flat.
        root: with root root' the inverse of the Hessian of -log pi at the mode; or sds.

    Raises:
        InputError: it is more than `LARGEST_CHANGE` in some direction, or the Newton step from the mode is longer than
            `FARTHEST` sqrt(D).
    """
    z = np.zeros((N_NEAR + 1, model.dimension))
    z[1:] = NEARNESS * np.random.default_rng(0).standard_normal((N_NEAR, model.dimension))
    found = scores(model, (mode + (z * root if root.ndim == 1 else z @ root.T)).astype(np.float32))
    found = found.astype(np.float64) * root if root.ndim == 1 else found.astype(np.float64) @ root
    changed = found[1:] - found[0]
    if root.ndim == 1:
        # Sds leave correlations, which would be noise in the means: of a change counts what the Hessian does not say.
        products = sum(hessian_products(model, unflatten(model, mode), np.float32(z[1:] * root)))
        changed -= products.astype(np.float64) * root + z[1:]
    changes = -np.mean(z[1:] * changed, axis=0) / NEARNESS**2
    largest = np.abs(changes).max()
    if not largest <= LARGEST_CHANGE:
        raise InputError(
            f"log_likelihood: of model {model.name!r}, scores near the MAP change {largest:.2g} times as much as the "
            "curvature there says; it must have second derivatives, and must not be flat at the MAP"
        )
    distance = np.linalg.norm(found[0])
    if not distance <= FARTHEST * len(mode) ** 0.5:
        raise InputError(
            f"position: the centre or MAP of {model.name!r} is no mode: by its score, one is {distance:.2g} posterior "
            "sds away"
        )


LEAST_CURVATURE = 1e-6


def local_factor(model: Model, position: Float[np.ndarray, " D"]) -> Float[np.ndarray, "..."]:
    """L with L L' the inverse of the Hessian of -log pi at a flat ``position``, its eigenvalues made positive.

    For a position that is no mode: an eigenvalue counts by its size, but at least 10^-6 of the largest. Above D = 2,000
    by the Hessian's diagonal (`sgtune.mode.find.hutchinson_diagonal`).

    Raises:
        InputError: the Hessian is zero or not finite.
    """
    at = unflatten(model, position)
    if model.dimension > LARGEST_FACTOR:
        return 1 / np.sqrt(hutchinson_diagonal(model, at))
    hessian = negative_hessian(model, at)
    if not np.isfinite(hessian).all() or not hessian.any():
        raise InputError(
            f"position: the Hessian of {model.name!r} there is zero or not finite; give another position"
        )
    factor = np.eye(model.dimension)
    for _ in range(MOST_CORRECTIONS + 1):
        values, directions = np.linalg.eigh(hessian)
        positive = np.maximum(np.abs(values), LEAST_CURVATURE * np.abs(values).max())
        factor = lower_triangle(factor @ (directions / np.sqrt(positive)))
        # As in `laplace_preconditioner`: float32 does not know the flat directions beside the steep ones.
        seen = precondition(model, Preconditioner(position, factor))
        hessian = negative_hessian(seen, np.zeros(model.dimension, np.float32))
        if not np.isfinite(hessian).all() or np.abs(np.abs(np.linalg.eigvalsh(hessian)) - 1).max() < ROUNDING:
            break
    return factor


def lower_triangle(root: Float[np.ndarray, "D D"]) -> Float[np.ndarray, "D D"]:
    """The lower-triangular L with L L' = ``root`` root'.

    By a QR factorisation, because the product itself would lose the small directions.
    """
    triangle = np.linalg.qr(root.T, mode="r")
    return (triangle * np.sign(np.diagonal(triangle))[:, None]).T


def resolve_preconditioner(
    model: Model, given: object, centre: Float[np.ndarray, " D"] | None = None
) -> Preconditioner | None:
    """The preconditioner that an argument, which `check_preconditioner` has seen, stands for; None for ``"none"``.

    Args:
        given: ``"laplace"`` (`laplace_preconditioner`), ``"none"``, a `Preconditioner`, or the posterior's scale about
            the MAP as `check_factor` takes it: D sds, or a lower-triangular L with P = L L'.
        centre: flat, in place of the MAP for an array, which is then not searched for.

    Raises:
        InputError: there is no proper MAP.
    """
    if isinstance(given, str):
        return laplace_preconditioner(model) if given == "laplace" else None
    if isinstance(given, Preconditioner):
        return given
    return Preconditioner(flatten(map_position(model)) if centre is None else centre, given)


def check_preconditioner(model: Model, given: object) -> None:
    """Check that `resolve_preconditioner` knows ``given``, before a MAP is searched for.

    Raises:
        InputError: it is none of what is allowed, or of another D.
    """
    if isinstance(given, str):
        check_choice(NAME, given, PRECONDITIONERS)
    elif isinstance(given, Preconditioner):
        check_factor(NAME, given.factor, model.dimension)
    elif hasattr(given, "shape") or isinstance(given, list | tuple):
        check_factor(NAME, given, model.dimension)
    else:
        allowed = f"{', '.join(PRECONDITIONERS)}, a Preconditioner, or an array"
        raise InputError(f"{NAME}: {given!r} is not allowed; it must be {allowed}")
