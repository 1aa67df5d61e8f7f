"""Posteriors made from another model: of fewer rows of its data, at another temperature, or pulled to a point."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

from sgtune.model import Found, Model
from sgtune.model.checks import check_test_data
from sgtune.model.positions import check_position, flatten
from sgtune.model.rows import StoredRows
from sgtune.support.errors import InputError, check_number

__all__ = ["hold_out", "localise", "temper", "weight_of"]

MOST_HELD = 2**30
"""Bytes of rows of a source that are held out: test data are in memory."""


def hold_out(model: Model, fraction: float, name: str = "fraction") -> Model:
    """``model`` without the last floor(``fraction`` N) rows of its data, which become its ``test_data``.

    Rows are in random order, so the held-out rows are a random subset; it is the same in every call. The result is a
    model of its own: its posterior is wider and has another mode, which is saved beside the mode of ``model`` under a
    name that contains the fraction. As long as ``model`` lives, further calls return the same object.

    Args:
        fraction: the share of the rows that is held out, in (0, 1).
        name: the name of the fraction in error messages.

    Raises:
        InputError: the fraction leaves no row out, or is not in (0, 1); ``predict`` or ``as_test`` is missing.
    """
    check_number(name, fraction, above=0, below=1)
    if model.predict is None or model.as_test is None:
        raise InputError(
            f"{name}: {fraction!r} needs a model with predict and as_test; {model.name!r} lacks at least one of them"
        )
    # The decimal as it is written: 0.29 of 100 rows are 29, although the float 0.29 is slightly smaller.
    n_held = int(Fraction(repr(float(fraction))) * model.n_data)
    if n_held < 1:
        raise InputError(
            f"{name}: {fraction!r} of N={model.n_data} rows is none; it must be >= {1 / model.n_data:.3g}"
        )
    kept = model.found.held_out
    if fraction not in kept:
        n_left = model.n_data - n_held
        data, held = _split(model.data, n_left, name)
        test_data = model.as_test(held)
        check_test_data(model.name, model.task, test_data, model.predict, model.position_shape)
        kept[fraction] = replace(
            model,
            name=f"{model.name}-without-{fraction:g}",
            data=data,
            test_data=test_data,
            row_numbers=None if model.row_numbers is None else model.row_numbers[:n_left],
            checksum=_checksum_without(model, n_left),
            found=Found(position_shape=model.found.position_shape),
        )
    return kept[fraction]


def _checksum_without(model: Model, n_left: int) -> str:
    """That of the data and of the numbers of the rows that are held out, which another shuffle changes."""
    held = last = np.arange(n_left, model.n_data)
    if isinstance(model.data, StoredRows):
        held = model.data.source.numbers_of(last)
    elif model.row_numbers is not None:
        held = model.row_numbers[n_left:]
    digest = hashlib.sha256(f"{model.checksum} without {len(held)}".encode())
    if held is not last:
        digest.update(np.sort(held).astype(np.int64).tobytes())
    return digest.hexdigest()


def _split(data: PyTree, n_left: int, name: str) -> tuple[PyTree, PyTree]:
    """The first ``n_left`` rows, and the others as NumPy arrays."""
    if isinstance(data, StoredRows):
        n_held = data.n_rows - n_left
        if n_held * data.row_bytes > MOST_HELD:
            raise InputError(
                f"{name}: {n_held} rows of a source are {n_held * data.row_bytes / 2**30:.1f} GB in memory; at most "
                f"{MOST_HELD / 2**30:.0f} are allowed"
            )
        return data.window(n_left), data.take(np.arange(n_left, data.n_rows))
    # NumPy slices, because JAX would compile a program for each.
    rows = jax.tree.map(np.asarray, data)
    return (
        jax.tree.map(lambda leaf: jnp.asarray(leaf[:n_left]), rows),
        jax.tree.map(lambda leaf: leaf[n_left:], rows),
    )


@dataclass(frozen=True)
class _Weighted:
    """A log-likelihood times a number. Products of the same two are equal, so they share compiled programs."""

    log_likelihood: Callable
    weight: float

    def __call__(self, position: PyTree, batch: PyTree) -> jax.Array:
        return self.weight * self.log_likelihood(position, batch)


def weight_of(model: Model) -> float:
    """What `temper` has multiplied the log-likelihoods of the data by."""
    weight, function = 1.0, model.log_likelihood
    while isinstance(function, _Weighted):
        weight, function = weight * function.weight, function.log_likelihood
    return weight


def temper(model: Model, inverse_temperature: float) -> Model:
    """The Gibbs posterior, proportional to exp(-lambda R(position)) times the prior, lambda the inverse temperature.

    R = -(1/N) sum of the log-likelihoods is the mean loss over the data; to use any other loss, pass its negative as
    ``log_likelihood``. lambda = N gives the ordinary posterior, and ``model`` itself is returned. Otherwise the result
    is a model of its own, whose log-likelihoods are lambda / N times the log-likelihoods of ``model``: samplers, scores
    and tuners see this posterior and its own mode. As long as ``model`` lives, further calls return the same object.

    Raises:
        InputError: lambda is not a number > 0.
    """
    number = check_number("inverse_temperature", inverse_temperature, above=0)
    if number == model.n_data:
        return model
    kept = model.found.tempered
    if number not in kept:
        kept[number] = replace(
            model,
            name=f"{model.name}-lambda-{number:g}",
            log_likelihood=_Weighted(model.log_likelihood, number / model.n_data),
            checksum=hashlib.sha256(f"{model.checksum} lambda {number!r}".encode()).hexdigest(),
            found=Found(position_shape=model.found.position_shape),
        )
    return kept[number]


@dataclass(frozen=True)
class _Pulled:
    """A log prior with a quadratic pull. Equal ones share compiled programs, and so the point counts by its bytes."""

    log_prior: Callable
    point: bytes
    strength: float

    def __call__(self, position: PyTree) -> jax.Array:
        away = ravel_pytree(position)[0] - np.frombuffer(self.point, np.float32)
        return self.log_prior(position) - 0.5 * self.strength * away @ away


def localise(model: Model, around: PyTree, strength: float) -> Model:
    """The posterior times exp(-``strength`` |position - ``around``|^2 / 2), which stays near a point, be it in a valley
    or at a saddle.

    With `temper` it is the localised Gibbs posterior, from which a local learning coefficient is estimated (Lau et al.,
    2023): `temper` changes the likelihood's weight, not the pull. The result is a model of its own. Where ``around`` is
    not near a mode, give it as ``position`` and ``centre`` to `sgtune.sample` and `sgtune.tune`, so that no mode is
    searched for.

    Args:
        around: a position of the model.
        strength: gamma, the precision of the pull, in each direction.

    Raises:
        InputError: ``around`` is not a position of the model, or the strength is not a number > 0.
    """
    number = check_number("strength", strength, above=0)
    point = flatten(check_position("around", model, around))
    if not np.isfinite(point).all():
        raise InputError(
            f"around: {point[~np.isfinite(point)][0]} is not allowed; all numbers must be finite"
        )
    # Data are arguments of compiled programs, but a point of D numbers is no larger than a position.
    pulled = _Pulled(model.log_prior, point.tobytes(), number)
    digest = hashlib.sha256(f"{model.checksum} pull {number!r}".encode() + pulled.point).hexdigest()
    return replace(
        model,
        name=f"{model.name}-localised-{digest[:8]}",
        log_prior=pulled,
        checksum=digest,
        found=Found(position_shape=model.found.position_shape),
    )
