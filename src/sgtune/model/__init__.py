"""The model: a log-prior, one log-likelihood value per datum, and the data."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

from sgtune.model.checks import (
    as_columns,
    check_leaves,
    check_rows,
    check_test_data,
    checked_blocks,
    in_single_precision,
)
from sgtune.model.preconditioner import Preconditioner
from sgtune.model.rows import RowSource, StoredRows, number_of_rows
from sgtune.support.errors import InputError, check_choice, check_integer
from sgtune.support.randomness import LARGEST_SEED

__all__ = ["Found", "Model", "define_model", "from_log_densities", "log_sigmoid"]


@dataclass
class Found:
    """Results computed for a model in this process, kept so that each is computed once.

    Attributes:
        of: the functions, data and coordinates that all of it is for.
        position_shape: shapes and dtypes of a position.
        mode: the result of `sgtune.mode.find.map_result`.
        searches: the result of the search for the mode from each start, by its number.
        laplace: the result of `sgtune.mode.curvature.laplace_scale`.
        hessian_diagonal: the arguments of the last call and its result (`sgtune.mode.find`).
        at_mode: arrays, by name, of gradient estimators, targets and curvature at the mode.
        held_out: the results of `sgtune.model.derived.hold_out`, by the fraction.
        tempered: the results of `sgtune.model.derived.temper`, by the inverse temperature.
        preconditioned: the last result of `sgtune.mode.coordinates.precondition`, by the preconditioner.
    """

    of: tuple | None = None
    position_shape: PyTree | None = None
    mode: Any = None
    searches: dict[int, Any] = field(default_factory=dict)
    laplace: np.ndarray | None = None
    hessian_diagonal: tuple[tuple, np.ndarray] | None = None
    at_mode: dict[str, PyTree] = field(default_factory=dict)
    held_out: dict[float, "Model"] = field(default_factory=dict)
    tempered: dict[float, "Model"] = field(default_factory=dict)
    preconditioned: dict[Preconditioner, "Model"] = field(default_factory=dict)

    def once_at_mode(self, name: str, make: Callable[[], PyTree]) -> PyTree:
        """``make()``, kept in ``at_mode`` by ``name``."""
        if name not in self.at_mode:
            self.at_mode[name] = make()
        return self.at_mode[name]


@dataclass(frozen=True, eq=False)
class Model:
    """A posterior over a pytree of parameters (the *position*), given N exchangeable data.

    log pi(position) = log_prior(position) + sum over the N rows of log_likelihood(position, rows).

    Attributes:
        name: its name in tables and files.
        log_prior: ``position -> ()``, up to a constant.
        log_likelihood: ``(position, batch) -> (n,)``, one value per datum of the batch.
        data: pytree of arrays whose leading axis is N, in random order (see `define_model`), or rows that are not in
            memory (`sgtune.model.rows.StoredRows`).
        init: ``key -> position``, a draw from the prior or another sensible start.
        predict: ``(position, inputs) -> (n, ...)``, the predictive mean or probability of each input.
        test_data: dict with ``inputs`` and ``targets``, or None.
        functionals: ``position -> (K,)``, the quantities that the data identify; chains are compared with a reference
            by them. None: the position itself.
        as_test: ``rows -> {"inputs", "targets"}``: rows of ``data`` in the form of ``test_data``, or None.
        constrain: ``(position, data) -> {name: value}``: what a position says in the user's own terms, such as an sd
            where the position has its logarithm (`sgtune.Chain.constrained`); None: the position itself.
        unconstrain: ``{name: value} -> position``, the inverse of ``constrain``, for draws of other samplers
            (`sgtune.diagnose`), or None.
        task: ``classification`` or ``regression``: which predictive metrics make sense.
        max_lockstep: the largest number of chains of one shape that run faster together than one by one; None: any.
        row_numbers: ``(N,)``: the number that each row of ``data`` had before they were shuffled; None: its own.
        checksum: SHA-256 of the training data; the file of the MAP is identified by it.
        data_dir: the folder of the MAP's file. None: the MAP is not saved, and every process finds it again.
        preconditioner: of a posterior over coordinates z of ``original`` (`sgtune.mode.coordinates.precondition`). A
            position is then z, ``(D,)``, while ``log_prior``, ``log_likelihood`` and ``predict`` are still functions of
            a position of ``original``; `sgtune.model.posterior.density_of` takes z.
        found: what has been computed for this posterior in this process. `dataclasses.replace` keeps what is of the
            same functions and data.
    """

    name: str
    log_prior: Callable
    log_likelihood: Callable
    data: PyTree
    init: Callable
    predict: Callable | None = None
    test_data: dict | None = None
    functionals: Callable | None = None
    as_test: Callable | None = None
    constrain: Callable | None = None
    unconstrain: Callable | None = None
    task: str = "classification"
    max_lockstep: int | None = None
    row_numbers: np.ndarray | None = field(default=None, repr=False)
    checksum: str = ""
    data_dir: Path | None = None
    preconditioner: Preconditioner | None = None
    original: "Model | None" = field(default=None, repr=False)
    found: Found = field(default_factory=Found, repr=False)

    def __post_init__(self):
        """`dataclasses.replace` hands ``found`` on: what it has of another posterior, and all models in it, go."""
        own = (self.log_prior, self.log_likelihood, self.data, self.init, self.preconditioner, self.checksum)
        of = self.found.of
        if of is None:
            self.found.of = own
        elif any(one is not other for one, other in zip(of, own, strict=True)):
            if self.preconditioner is not None:
                raise InputError(
                    f"model: {self.name!r} is in coordinates of its posterior; replace its original"
                )
            if of[2] is not self.data and of[-1] is self.checksum:
                # Files of the mode are known by it.
                object.__setattr__(self, "checksum", _checksum_of(self.data))
            object.__setattr__(self, "found", Found(of=(*own[:-1], self.checksum)))
        else:
            kept = {name: dict(getattr(self.found, name)) for name in ("searches", "at_mode")}
            found = replace(self.found, **kept, held_out={}, tempered={}, preconditioned={})
            object.__setattr__(self, "found", found)

    def __repr__(self) -> str:
        return f"Model({self.name!r}: N={self.n_data:,}, D={self.dimension:,})"

    @property
    def n_data(self) -> int:
        """N, the number of training data."""
        return number_of_rows(self.data)

    @property
    def dimension(self) -> int:
        """D, the number of scalar parameters."""
        return int(sum(np.prod(leaf.shape) for leaf in jax.tree.leaves(self.position_shape)))

    @property
    def position_shape(self) -> PyTree:
        """Shapes and dtypes of a position, without computing one."""
        if self.found.position_shape is None:
            self.found.position_shape = jax.eval_shape(lambda: self.init(jax.random.key(0)))
        return self.found.position_shape

    def abreast(self, chains: list) -> list[list]:
        """``chains`` of one shape, split into groups of at most `max_lockstep` that advance together."""
        width = self.max_lockstep or max(1, len(chains))
        return [chains[start : start + width] for start in range(0, len(chains), width)]

    def unravel(self, flat: jax.Array) -> PyTree:
        """A ``(D,)`` vector as a position."""
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), self.position_shape)
        return ravel_pytree(zeros)[1](flat)


def _is_constant(array: object) -> bool:
    """Whether nobody can write to the memory of an array, neither by itself nor by one that it is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return True


def define_model(
    name: str,
    *,
    log_prior: Callable,
    log_likelihood: Callable,
    data: PyTree,
    init: Callable,
    predict: Callable | None = None,
    test_data: dict | None = None,
    functionals: Callable | None = None,
    as_test: Callable | None = None,
    constrain: Callable | None = None,
    unconstrain: Callable | None = None,
    task: str = "classification",
    max_lockstep: int | None = None,
    data_dir: str | Path | None = None,
    shuffle_seed: int | None = 0,
    checksum: str | None = None,
) -> Model:
    """A `Model` from its functions and data, for a sampler, a tuner or the pipeline.

    Args:
        name: its name in tables and in the file of its MAP.
        log_prior: ``position -> ()``, up to a constant.
        log_likelihood: ``(position, batch) -> (n,)``, one value per datum of the batch, not their sum.
        data: pytree of arrays whose leading axis is N. A pandas frame is a dict of its columns, a categorical column
            its codes. Numbers of 64 bits become such of 32. Or a `sgtune.RowSource`: rows that stay in a file.
        init: ``key -> position``, a pytree of float arrays: where the search for the MAP starts.
        predict: ``(position, inputs) -> (m, ...)``: the predicted mean of each input, ``(m,)``; for classification
            P(y = 1), ``(m,)``, or the probabilities of all classes, ``(m, classes)``. None: the model does not predict.
        test_data: ``{"inputs": pytree, "targets": (m,)}``; targets of a classification are integers from 0. Further
            ``ood`` (`sgtune.metrics.ood_metrics`), inputs of another set.
        functionals: ``position -> (K,)``, the quantities that the data identify; None: the position itself.
        as_test: ``rows -> {"inputs", "targets"}``: rows of ``data`` in the form of ``test_data``, for
            `sgtune.model.derived.hold_out`.
        constrain: ``(position, data) -> {name: value}``: the position in your own terms, for `sgtune.Chain.constrained`
            and ArviZ.
        unconstrain: ``{name: value} -> position``, its inverse, for draws of other samplers (`sgtune.diagnose`).
        task: ``classification`` or ``regression``: which metrics of predictions make sense.
        max_lockstep: the largest number of chains of one shape that run faster together than one by one; None: any.
        data_dir: the folder of the files of the MAP and the Laplace approximation. None: they are not saved.
        shuffle_seed: rows are shuffled once, from this seed, because minibatches of more than 4,000 rows may consist of
            blocks of consecutive rows (`sgtune.samplers.minibatch`). None: they are in random order already. Rows of a
            source are shuffled in its blocks.
        checksum: the SHA-256 of the data, if it is known; otherwise all data are read to compute it. Rows of a source
            are checked at the same time, without it only those that are used.

    Returns:
        The model. Its MAP is found when it is first needed.

    Raises:
        InputError: leaves of ``data`` differ in length, are not numeric, have NaN, or lose their values in 32 bits; a
            position has an integer leaf; a function returns a wrong shape; the value of a row changes when other rows
            join its batch; targets of ``test_data`` are not those of the task; or a value is not allowed.
    """
    is_source = isinstance(data, RowSource)
    data = data if is_source else as_columns(data)
    shapes = [(len(data),)] if is_source else [np.shape(leaf) for leaf in jax.tree.leaves(data)]
    if not shapes or any(shape[:1] != shapes[0][:1] or not shape for shape in shapes):
        raise InputError(f"data: model {name!r} needs arrays that share a leading axis of N rows")
    n_data = check_integer("data: number of rows", shapes[0][0], at_least=1)
    check_choice("task", task, ("classification", "regression"))
    if shuffle_seed is not None:
        check_integer("shuffle_seed", shuffle_seed, at_least=0, at_most=LARGEST_SEED)
    if max_lockstep is not None:
        check_integer("max_lockstep", max_lockstep, at_least=1)
    if checksum is None and is_source:
        # All values are checked while they pass.
        columns = ((*kind, checked_blocks(column, blocks)) for column, *kind, blocks in data.columns())
        checksum = _checksum(columns)
    elif checksum is None:
        checksum = _checksum((leaf.dtype, leaf.shape, [leaf]) for leaf in jax.tree.leaves(data))
    order = None
    if is_source:
        data = StoredRows(data.shuffled(shuffle_seed))
        rows = data.take(np.arange(min(3, n_data)))
    else:
        if shuffle_seed is not None:
            order = np.random.default_rng(shuffle_seed).permutation(n_data)
            data = jax.tree.map(lambda leaf: leaf[order], data)
        rows = jax.tree.map(in_single_precision, data)
        # A copy of arrays that may still change: JAX shares memory with NumPy where it can. A view that cannot be
        # written to may be of one that can.
        data = jax.tree.map(lambda leaf: jnp.array(leaf, copy=order is None and not _is_constant(leaf)), rows)
    if any(leaf.dtype.itemsize == 8 for leaf in jax.tree.leaves(jax.eval_shape(init, jax.random.key(0)))):
        init = _InSinglePrecision(init)
    model = Model(
        name=name,
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        data=data,
        init=init,
        predict=predict,
        test_data=test_data,
        functionals=functionals,
        as_test=as_test,
        constrain=constrain,
        unconstrain=unconstrain,
        task=task,
        max_lockstep=max_lockstep,
        row_numbers=order,
        checksum=checksum,
        data_dir=Path(data_dir) if data_dir is not None else None,
    )
    check_leaves(name, model.position_shape)
    if unconstrain is not None and constrain is None:
        raise InputError(f"unconstrain: model {name!r} has no constrain, of which it must be the inverse")
    if test_data is not None:
        check_test_data(name, task, test_data, predict, model.position_shape)
    prior = jax.eval_shape(log_prior, model.position_shape)
    if getattr(prior, "shape", None) != ():
        raise InputError(f"log_prior: model {name!r} gives {prior}; it must give one number")
    # Only shapes are needed; slicing the arrays would make JAX compile a program for each.
    two = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((min(2, n_data), *leaf.shape[1:]), leaf.dtype), rows)
    per_datum = jax.eval_shape(log_likelihood, model.position_shape, two)
    if (shape := getattr(per_datum, "shape", None)) != (min(2, n_data),):
        raise InputError(
            f"log_likelihood: model {name!r} gives {f'shape {shape}' if shape is not None else per_datum} for "
            f"{min(2, n_data)} rows; it must give one value per datum"
        )
    if functionals is not None:
        given = jax.eval_shape(functionals, model.position_shape)
        if len(getattr(given, "shape", ())) != 1:
            raise InputError(f"functionals: model {name!r} gives {given}; it must give one vector (K,)")
    check_rows(name, log_likelihood, init, rows)
    return model


@dataclass(frozen=True)
class _InSinglePrecision:
    """A start in 32 bits: under jax_enable_x64 ``init`` gives 64, but chains run in float32."""

    init: Callable

    def __call__(self, key: jax.Array) -> PyTree:
        return jax.tree.map(lambda leaf: in_single_precision(jnp.asarray(leaf)), self.init(key))


@dataclass(frozen=True)
class _OfRows:
    """A log-likelihood of one datum for the rows of a batch. Those of one function are equal, and share programs."""

    of_one: Callable

    def __call__(self, position: PyTree, batch: PyTree) -> jax.Array:
        return jax.vmap(self.of_one, in_axes=(None, 0))(position, batch)


def from_log_densities(
    log_prior: Callable,
    log_likelihood_of_one: Callable,
    data: PyTree,
    init: Callable,
    *,
    name: str = "posterior",
    **options: Any,
) -> Model:
    """A `Model` from a log prior and the log-likelihood of one datum, which is vectorised over the rows of a batch.

    Args:
        log_prior: ``position -> ()``, up to a constant.
        log_likelihood_of_one: ``(position, datum) -> ()``; ``datum`` has the structure of ``data`` without its leading
            axis.
        data, init, name, options: as for `define_model`.

    Raises:
        InputError: as for `define_model`.
    """
    return define_model(
        name,
        log_prior=log_prior,
        log_likelihood=_OfRows(log_likelihood_of_one),
        data=data,
        init=init,
        **options,
    )


def _checksum_of(data: PyTree) -> str:
    """Of rows in memory; of others none is known, and no file is of them."""
    if isinstance(data, StoredRows):
        return ""
    return _checksum((leaf.dtype, leaf.shape, [np.asarray(leaf)]) for leaf in jax.tree.leaves(data))


def _checksum(columns: Iterable[tuple[np.dtype, tuple, Iterable[np.ndarray]]]) -> str:
    digest = hashlib.sha256()
    for dtype, shape, blocks in columns:
        digest.update(f"{dtype}{shape}".encode())
        for block in blocks:
            # As bytes: a buffer of bfloat16 has no format.
            digest.update(np.ascontiguousarray(block).reshape(-1).view(np.uint8))
    return digest.hexdigest()


@jax.custom_jvp
def log_sigmoid(x: jax.Array) -> jax.Array:
    """log(1 / (1 + exp(-x))), numerically stable, with the derivative sigmoid(-x).

    `jax.nn.log_sigmoid` differentiates through log1p; on a CPU that costs several times as much as the rest of the
    gradient. Its values cost twice as much as these, because logaddexp also selects by nan and inf.
    """
    return jnp.minimum(x, 0) - jnp.log1p(jnp.exp(-jnp.abs(x)))


@log_sigmoid.defjvp
def _log_sigmoid_jvp(primals, tangents):
    (x,), (tangent,) = primals, tangents
    return log_sigmoid(x), jax.nn.sigmoid(-x) * tangent
