"""Models of NumPyro as models of sgtune: the prior of the latent sites, and a log-likelihood for each row of the data.

A NumPyro model is run on the rows of a minibatch. Its plates of the data then have the size of the minibatch, and their
indices number its rows, so that a model that takes rows by index, by `numpyro.subsample`, or as they are gives the
same values. Positions are NumPyro's unconstrained values of the latent sites, in a dict by name.
"""

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import RLock
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from sgtune.model import Model, define_model
from sgtune.model.checks import as_columns, columns_of, in_single_precision, start_and_near
from sgtune.model.rows import RowSource
from sgtune.support.errors import InputError, import_extra
from sgtune.support.machine import full_precision

try:
    from numpyro import handlers
    from numpyro.infer import init_to_median, init_to_uniform
    from numpyro.infer.util import compute_log_probs, constrain_fn, potential_energy, unconstrain_fn
    from numpyro.primitives import Messenger
except ModuleNotFoundError:  # `from_numpyro` says so
    Messenger = object

__all__ = ["from_numpyro"]

MOST_CHECKED = 1_000
"""Rows on which the pieces are compared with NumPyro's own density, if the model's plates let it take fewer than N."""

SAME = 1e-4
"""Float32 numbers of one formula in two compiled programs differ by less than this share of their size."""

# NumPyro's stack of handlers is one for all threads, and sgtune traces programs in several.
_LOCK = RLock()


class _DataPlates(Messenger):
    """Gives the plates of the data the rows that there are."""

    def __init__(self, model, plates, n_rows, scans):
        self.plates, self.n_rows, self.scans, self.sizes = plates, n_rows, scans, {}
        super().__init__(model)

    def process_message(self, message):
        kind = message["type"]
        if kind == "plate" and message["name"] in self.plates:
            size = self.sizes[message["name"]] = message["args"][0]
            message["args"] = (size, self.n_rows)
            message["value"] = jnp.arange(self.n_rows)
        elif kind == "subsample" and self.plates:
            # The rows are a subsample already; without its event_dim no plate takes some of them.
            message["kwargs"] = {}
        elif kind == "sample" and message["scale"] is not None:
            for frame in message["cond_indep_stack"]:
                if frame.name in self.sizes:
                    # The plate has multiplied by size / n.
                    message["scale"] = message["scale"] * (self.n_rows / self.sizes[frame.name])
        elif kind == "control_flow" and self.scans is not None and len(message["args"]) == 5:
            # A scan, whose third argument has a leading axis that it runs over.
            leaves = jax.tree.leaves(message["args"][2])
            self.scans.append(leaves[0].shape[0] if leaves else message["args"][3])


@dataclass(frozen=True)
class _Site:
    """What a trace says of a site. ``shape``: of its log probability, or of the value of a deterministic site.

    Attributes:
        plates: names of the plates around it.
        size, subsample: of a plate.
    """

    kind: str
    shape: tuple[int, ...] = ()
    plates: tuple[str, ...] = ()
    is_discrete: bool = False
    size: int = 0
    subsample: int | None = None


@dataclass(frozen=True, eq=False)
class _Runs:
    """A NumPyro model that is run on any rows of its data.

    Attributes:
        conditioned: entries of the data that are values of sites, not arguments.
        plates: the plates of the data.
        likelihood: the sites with a log probability for each row, and its axis, counted from the right.
        per_row: deterministic sites with a value for each row.
    """

    model: Callable
    args: tuple
    kwargs: dict
    conditioned: tuple[str, ...] = ()
    plates: frozenset[str] = frozenset()
    likelihood: Mapping[str, int] = field(default_factory=dict)
    per_row: frozenset[str] = frozenset()

    def on(
        self,
        rows: PyTree,
        *,
        plates: frozenset[str] | None = None,
        key: Any = 0,
        scans: list[int] | None = None,
    ) -> tuple[Callable, tuple, dict]:
        """The model on ``rows``, and its arguments: the first three arguments of NumPyro's functions."""
        n_rows = jax.tree.leaves(rows)[0].shape[0]
        model = handlers.condition(self.model, data={name: rows[name] for name in self.conditioned})
        model = _DataPlates(model, self.plates if plates is None else plates, n_rows, scans)
        given = {name: value for name, value in rows.items() if name not in self.conditioned}
        # Modules of neural networks, and parameters without a value, need a key.
        return handlers.seed(model, key), self.args, {**self.kwargs, **given}

    def sites(self, n_rows: int, data: PyTree, plates: frozenset[str]) -> tuple[dict[str, _Site], list[int]]:
        """The sites of a run on ``n_rows`` rows of the shapes of ``data``, and the lengths of its scans. Nothing is
        computed."""
        found, scans = {}, []

        def run(rows):
            model, *arguments = self.on(rows, plates=plates, scans=scans)
            # An improper prior has no draws.
            started = handlers.substitute(model, substitute_fn=init_to_uniform())
            log_probs, trace = compute_log_probs(started, *arguments, {}, sum_log_prob=False)
            for name, site in trace.items():
                around = tuple(frame.name for frame in site.get("cond_indep_stack", ()))
                if site["type"] == "sample":
                    kind = "observed" if site["is_observed"] else "latent"
                    is_discrete = kind == "latent" and bool(site["fn"].support.is_discrete)
                    found[name] = _Site(kind, jnp.shape(log_probs[name]), around, is_discrete)
                elif site["type"] == "deterministic":
                    found[name] = _Site("deterministic", jnp.shape(site["value"]), around)
                elif site["type"] == "plate":
                    found[name] = _Site("plate", size=site["args"][0], subsample=site["args"][1])

        shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((n_rows, *leaf.shape[1:]), leaf.dtype), data)
        with _LOCK:
            jax.eval_shape(run, shapes)
        return found, scans

    def prior(self, position: dict, rows: PyTree) -> jax.Array:
        """The log density of the latent sites and of factors outside the plate, Jacobians included."""
        with _LOCK:
            model, *arguments = self.on(rows)
            return -potential_energy(handlers.block(model, hide=list(self.likelihood)), *arguments, position)

    def rows(self, position: dict, rows: PyTree) -> jax.Array:
        """The log-likelihood of each row: ``(n,)``."""
        with _LOCK:
            values = constrain_fn(*self.on(rows), position)
            log_probs, _ = compute_log_probs(*self.on(rows), values, sum_log_prob=False)
        return self.summed(log_probs)

    def summed(self, log_probs: dict) -> jax.Array:
        """Log probabilities of the sites of the likelihood, summed over all axes but the data's."""
        total = 0.0
        for name, axis in self.likelihood.items():
            of_site = log_probs[name]
            others = [i for i in range(of_site.ndim) if i != of_site.ndim + axis]
            total = total + of_site.sum(axis=others)
        return total

    def init(self, key: jax.Array, rows: PyTree) -> dict:
        """Medians of a few draws of the prior, unconstrained (`numpyro.infer.init_to_median`)."""
        with _LOCK:
            model, args, kwargs = self.on(rows, key=key)
            started = handlers.substitute(model, substitute_fn=init_to_median())
            trace = handlers.trace(started).get_trace(*args, **kwargs)
            values = {
                name: site["value"]
                for name, site in trace.items()
                if site["type"] == "sample" and not site["is_observed"]
            }
            start = unconstrain_fn(*self.on(rows, key=key), values)
        # Draws of a vague prior such as Gamma(0.001, 0.001) are 0 in float32, whose logarithm is no start.
        return jax.tree.map(lambda leaf: jnp.where(jnp.isfinite(leaf), leaf, 0), start)

    def constrain(self, position: dict, rows: PyTree) -> dict:
        """Values of the latent and of the deterministic sites, but for those that have one for each row."""
        with _LOCK:
            values = constrain_fn(*self.on(rows), position, return_deterministic=True)
        return {name: value for name, value in values.items() if name not in self.per_row}

    def unconstrain(self, values: dict, rows: PyTree, latents: frozenset[str]) -> dict:
        """The position whose ``latents`` have these values."""
        with _LOCK:
            return unconstrain_fn(*self.on(rows), {name: values[name] for name in latents})


def from_numpyro(
    model: Callable,
    data: Mapping[str, PyTree],
    *,
    obs: Sequence[str] | None = None,
    plate: str | None = None,
    args: tuple = (),
    kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> Model:
    """A `Model` from a model of NumPyro and its data.

    log pi(position) = -potential_energy(model without its likelihood) + sum over the rows of their log probability,

    which is minus NumPyro's potential energy of the whole model; this is checked once. A position is a dict of
    unconstrained values of the latent sites, and the prior has the log determinants of their transforms. Observed sites
    and factors with a log probability for each row are the likelihood, summed over all axes but the rows'; other
    observed sites and factors belong to the prior. Scales and masks of handlers count; the factor N / n of a plate that
    subsamples does not, because samplers take their own minibatches. ``chain.constrained()`` has the draws as values of
    the sites, with deterministic sites that have not a value for each row. Draws of NumPyro's own samplers are judged
    by ``sgtune.diagnose(model, mcmc.get_samples(), constrained=True)``.

    Args:
        model: a function with NumPyro's primitives.
        data: what has a row for each datum, by name: arrays, trees of them, or a pandas frame of columns. They are the
            model's arguments of these names. Arrays of N rows elsewhere, as in ``kwargs``, are refused, because a
            minibatch has only its own rows.
        obs: entries that are values of the sites of the same names, for models that do not take them as arguments.
        plate: the plate of the data; None: plates of size N with an observed site, if there are any. A model
            needs none.
        args, kwargs: the model's other arguments. Arrays among them are constants of every compiled program: keep them
            below some MB.
        options: others of `define_model`, such as ``name`` (the model's own) and ``init`` (medians of draws of the
            prior), of unconstrained values.

    Raises:
        InputError: NumPyro is not installed, the model and the data do not fit together, latent sites are discrete or
            have a value for each row, supports or priors depend on the data, a plate besides the data's subsamples, a
            scan runs over the rows, or a row's log probability depends on other rows.
    """
    import_extra("numpyro", "numpyro")
    if hasattr(data, "columns"):
        data = columns_of(data)
    if isinstance(data, RowSource):
        raise InputError(
            "data: a RowSource is not allowed for a model of NumPyro, which is checked on all rows; use define_model"
        )
    if not isinstance(data, Mapping) or not data:
        raise InputError("data: must be a dict of the model's arguments with a row for each datum")
    data = jax.tree.map(in_single_precision, as_columns(dict(data)))
    kwargs, conditioned = dict(kwargs or {}), _conditioned(model, data, obs, args, kwargs or {})
    shapes = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(data)}
    if len(shapes) != 1 or () in shapes:
        raise InputError(
            f"data: lengths {sorted(shapes)} are not allowed; all arrays must have the same N rows"
        )
    name = options.pop("name", getattr(model, "__name__", "numpyro"))
    runs = _runs_of(name, _Runs(model, tuple(args), kwargs, conditioned), data, plate)
    few = jax.tree.map(lambda leaf: jnp.asarray(leaf[:2]), data)
    medians = partial(runs.init, rows=few)
    init = options.pop("init", medians)
    if init is not medians:
        _check_init(name, init, medians)
    _check_pieces(name, runs, init, data, few)
    if not {"constrain", "unconstrain"} & options.keys():
        latents = frozenset(jax.eval_shape(medians, jax.random.key(0)))
        options["unconstrain"] = partial(runs.unconstrain, rows=few, latents=latents)
    options.setdefault("constrain", runs.constrain)
    return define_model(
        name,
        log_prior=partial(runs.prior, rows=few),
        log_likelihood=runs.rows,
        data=data,
        init=init,
        **options,
    )


def _conditioned(
    model: Callable, data: Mapping, obs: Sequence[str] | None, args: tuple, kwargs: Mapping
) -> tuple[str, ...]:
    """The entries of ``data`` that are values of sites, because the model does not take them as arguments."""
    obs = () if obs is None else (obs,) if isinstance(obs, str) else tuple(obs)
    for entry in obs:
        if entry not in data:
            raise InputError(f"obs: {entry!r} is not allowed; it must be an entry of data: {', '.join(data)}")
    signature = inspect.signature(model)
    takes_all = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
    for entry in data:
        if entry not in signature.parameters and entry not in obs and not takes_all:
            raise InputError(
                f"data: {entry!r} is no argument of the model, {signature}; if it is the value of the site of this "
                f"name, add it to obs"
            )
    conditioned = tuple(entry for entry in obs if entry not in signature.parameters)
    try:
        signature.bind(*args, **kwargs, **{entry: None for entry in data if entry not in conditioned})
    except TypeError as error:
        raise InputError(
            f"data: with args and kwargs they do not fit the model, {signature}: {error}"
        ) from None
    return conditioned


def _runs_of(name: str, runs: _Runs, data: PyTree, plate: str | None) -> _Runs:
    """``runs`` with what traces say: plates of the data, sites of the likelihood, deterministic sites for each row.

    Raises:
        InputError: as `from_numpyro`.
    """
    n_data = len(jax.tree.leaves(data)[0])
    try:
        every, _ = runs.sites(n_data, data, frozenset())
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        raise InputError(
            f"model: {name!r} cannot be compiled with its data as arguments ({_first_line(error)}); numbers that "
            "shapes or branches depend on, such as that of groups, must be in kwargs, and arrays with N rows in data"
        ) from error
    except Exception as error:
        raise InputError(f"model: {name!r} fails on its data: {_first_line(error)}") from error
    plates = _plates_of_data(every, n_data, plate)
    traces = {}
    for n in (2, 3):
        try:
            traces[n] = runs.sites(n, data, plates)
        except Exception as error:
            for site_name, site in every.items():
                if site.kind == "latent" and n_data in site.shape:
                    raise _local(site_name, n_data) from error
            raise InputError(
                f"model: {name!r} fails on {n} of its N={n_data} rows: {_first_line(error)}; arrays with N rows must "
                "be in data"
            ) from error
    (two, scans_of_two), (three, scans_of_three) = traces[2], traces[3]
    if two.keys() != three.keys():
        raise InputError(f"model: {name!r} has other sites with 3 rows than with 2; they must be the same")
    if scans_of_two != scans_of_three:
        raise InputError(
            f"model: {name!r} has a scan over the rows of its data; rows must be independent given the latents"
        )
    likelihood, per_row = {}, set()
    for site_name, site in two.items():
        varying = [i for i in range(-len(site.shape), 0) if site.shape[i] != three[site_name].shape[i]]
        in_plate = plates & set(site.plates)
        if site.kind == "plate":
            if site_name not in plates and site.subsample is not None and site.subsample < site.size:
                raise InputError(
                    f"plate: {site_name!r} takes {site.subsample} of {site.size}; only the data's plate may subsample"
                )
        elif site.kind == "deterministic":
            per_row |= {site_name} if varying or in_plate else set()
        elif site.kind == "latent":
            if site.is_discrete:
                raise InputError(
                    f"model: the latent site {site_name!r} is discrete, which is not allowed; sum over its values"
                )
            if varying or in_plate:
                raise _local(site_name, n_data)
        elif varying:
            if len(varying) > 1:
                raise InputError(
                    f"model: {site_name!r} has log probabilities of shape {site.shape} for 2 rows: a row broadcasts "
                    "against the others; give observations and means one shape"
                )
            likelihood[site_name] = varying[0]
        elif in_plate or site_name in runs.conditioned:
            raise InputError(
                f"model: {site_name!r} has one log probability for all rows, not one for each; rows must be "
                "independent given the latents"
            )
    for entry in runs.conditioned:
        if entry not in likelihood:
            raise InputError(f"obs: {entry!r} is neither an argument nor a site of {name!r}")
    if not likelihood:
        raise InputError(
            f"model: {name!r} has no observed site with a log probability for each row of its data"
        )
    return replace(runs, plates=plates, likelihood=likelihood, per_row=frozenset(per_row))


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _local(site_name: str, n_data: int) -> InputError:
    return InputError(
        f"model: the latent site {site_name!r} has a value for each of the N={n_data} rows, which a minibatch cannot "
        "update; integrate it out, or share it between rows"
    )


def _plates_of_data(sites: Mapping[str, _Site], n_data: int, plate: str | None) -> frozenset[str]:
    sizes = {name: site.size for name, site in sites.items() if site.kind == "plate"}
    if plate is not None:
        if sizes.get(plate) != n_data:
            known = ", ".join(f"{name} ({size})" for name, size in sizes.items()) or "none"
            raise InputError(
                f"plate: {plate!r} is not allowed; it must be one of size N={n_data}; there are: {known}"
            )
        return frozenset({plate})
    found = set()
    for name, site in sites.items():
        around = [one for one in site.plates if sizes.get(one) == n_data]
        if site.kind == "observed":
            if len(around) > 1:
                raise InputError(
                    f"plate: {name!r} is in {' and '.join(around)}, all of size N={n_data}; name the plate of the data"
                )
            found |= set(around)
    return frozenset(found)


def _check_init(name: str, init: Callable, medians: Callable) -> None:
    """Check that ``init`` has all latent sites, with their unconstrained shapes: NumPyro would draw one that is missing
    from its prior, once and for all."""
    key = jax.random.key(0)
    wanted = {site: leaf.shape for site, leaf in jax.eval_shape(medians, key).items()}
    given = jax.eval_shape(init, key)
    sites = given if isinstance(given, Mapping) else {}
    shapes = {site: getattr(leaf, "shape", leaf) for site, leaf in sites.items()}
    if shapes != wanted:
        theirs, ours = (", ".join(f"{site} {each[site]}" for site in each) for each in (shapes, wanted))
        raise InputError(
            f"init: {theirs or given} not allowed; model {name!r} needs the unconstrained {ours}"
        )


def _check_pieces(name: str, runs: _Runs, init: Callable, data: PyTree, few: PyTree) -> None:
    """Compare prior and rows with NumPyro's potential energy, of as many rows as that can be had for.

    Raises:
        InputError: they differ by more than float32 rounding.
    """
    n_data = len(jax.tree.leaves(data)[0])
    n_checked = min(n_data, MOST_CHECKED)
    sites, _ = runs.sites(n_checked, data, runs.plates)
    if any(sites[plate].size == n_data for plate in runs.plates):
        n_checked = n_data
    rows = jax.tree.map(lambda leaf: leaf[:n_checked], data)

    @jax.jit
    @full_precision
    def compare(position, rows, few):
        # NumPyro's own way to the whole data of a plate that subsamples: its indices are substituted.
        indices = {plate: jnp.arange(n_checked) for plate in runs.plates}
        with _LOCK, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="subsample_size does not match")

            def whole():
                model, *arguments = runs.on(rows, plates=frozenset())
                return handlers.substitute(model, data=indices), *arguments

            latents = constrain_fn(*whole(), position)
            log_probs, _ = compute_log_probs(*whole(), latents, sum_log_prob=False)
            energy = potential_energy(*whole(), position)
            model, *arguments = whole()
            prior = -potential_energy(handlers.block(model, hide=list(runs.likelihood)), *arguments, position)
            of_few = constrain_fn(*runs.on(few), position)
            log_probs_of_few, _ = compute_log_probs(*runs.on(few), of_few, sum_log_prob=False)
            # Backwards, so that a row that sees those before it, or takes its own by its number from arrays that are
            # not in the data, has another value.
            every = runs.rows(position, jax.tree.map(lambda leaf: leaf[::-1], rows))[::-1]
        return {
            "latents": (of_few, latents),
            "prior": (runs.prior(position, few), prior),
            "sites": {
                site: (log_probs_of_few[site].sum(), log_probs[site].sum())
                for site in log_probs
                if site not in runs.likelihood
            },
            "rows": (every, runs.summed(log_probs)),
            "first": (runs.rows(position, few), every[:2]),
            "energy": energy,
        }

    start, near = start_and_near(init)
    found = compare(near, rows, few)
    found = found if np.isfinite(found["energy"]) else compare(start, rows, few)
    found = jax.tree.map(partial(np.asarray, dtype=np.float64), found)
    of_few, latents = found["latents"]
    for site in latents:
        if not _same(of_few[site], latents[site]):
            raise InputError(f"model: the support of {site!r} depends on the data, which is not allowed")
    prior, of_all = found["prior"]
    # Of a prior over thousands of parameters the sum hides what one site has of the data.
    if not (_same(prior, of_all) and all(_same(*pair) for pair in found["sites"].values())):
        raise InputError(
            f"model: the log prior of {name!r} is {prior:.6g} with 2 rows of the data and {of_all:.6g} with "
            f"{n_checked}; what it needs of the data must be in kwargs"
        )
    for pair in ("first", "rows"):
        ours, theirs = found[pair]
        if not _same(ours, theirs):
            row = int(np.argmax(np.abs(ours - theirs)))
            raise InputError(
                f"model: the log probability of row {row} of {name!r} is {ours[row]:.6g} or {theirs[row]:.6g}, as "
                "other rows are beside it; it must not depend on them, nor on their number or order; arrays with N "
                "rows must be in data"
            )
    total, size = prior + found["rows"][0].sum(), abs(prior) + np.abs(found["rows"][0]).sum()
    if np.isfinite(total) and abs(total + found["energy"]) > SAME * (1 + size):
        raise InputError(
            f"model: prior and rows of {name!r} sum to {total:.8g}, and minus its potential energy is "
            f"{-found['energy']:.8g}; they must be equal"
        )


def _same(ours: np.ndarray, theirs: np.ndarray) -> bool:
    scale = np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)
    return bool(np.allclose(ours, theirs, rtol=SAME, atol=SAME * max(1.0, scale), equal_nan=True))
