"""`diagnose`: what is wrong with draws of a posterior, parameter by parameter, from the draws and their scores.

For a posterior pi with score s, any matrix C and any point c, Stein's identity gives

    E[C s(x)] = 0    and    E[-(x_i - c_i) (C s(x))_i] = C_ii,

the tests of the mean and of the spread of each parameter (for the second see `sgtune.stein.virials`, arXiv 2412.05135).
They hold for every C, and say most if C is near the posterior's covariance: for a Gaussian posterior -C s(x) is then x
less the mean, so that the first is the error of the draws' mean and the second, over C_ii, the variance of the draws
over that of the posterior, in each parameter alone, whatever they are correlated with. Without it C is diagonal, and
both are about the density of a parameter given all others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from sgtune.bridges.arviz_trees import unconstrained
from sgtune.bridges.plots import plot_diagnosis
from sgtune.metrics.mixing import effective_draws, split_rhat
from sgtune.model import Model
from sgtune.model.positions import from_matrix, to_matrix, unflatten
from sgtune.model.posterior import Density, density_of, log_posterior, score_chunk, scores
from sgtune.model.preconditioner import Preconditioner
from sgtune.model.rows import named_faults, number_of_rows, rows_between
from sgtune.samplers import resolve_sampler
from sgtune.samplers.gradients import stochastic_scores
from sgtune.sampling.lockstep import shared_constants
from sgtune.support.errors import InputError, check_integer, check_number
from sgtune.support.randomness import LARGEST_SEED

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Diagnosis", "affordable", "as_chains", "check_run", "diagnose", "parameter_names"]

LOOKED_AT, LOOKED_AT_NUMBERS = 10_000, 2**26
"""At most so many draws, and so many numbers in them, are looked at."""

SCORED, SCORED_NUMBERS, FEWEST_SCORED = 1_000, 2**23, 200
"""At most so many draws, and numbers in them, have scores; at least so many, if there are."""

FEWEST_DRAWS = 20
"""Fewer draws tell nothing of errors of their moments."""

DENSITY_DRAWS, DENSITY_ROWS, DENSITY_SHARE = 200, 256, 0.1
"""So many draws have their log densities looked at for -inf: of all data if that is at most such a share of what a
check may cost, otherwise of the first rows."""

DRAWS_PER_PARAMETER = 5
"""C is estimated from so many scored draws for each parameter, or more."""

FEWEST_EFFECTIVE = 100
"""With fewer effective draws the error of a mean is more than a tenth of a posterior sd."""

FALSE_ALARMS = 0.01
"""The probability that exact draws have any parameter named, for each kind of error."""

SHARE_OF_RUN, FEWEST_ROWS = 0.05, 1_000
"""A check after a run costs this share of the run's data terms, or what a score of this many rows would; rounded down
to a power of two, it has half as many or more."""

KINDS = ("too wide", "too narrow", "off centre", "slow")


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """The result of `diagnose`.

    Attributes:
        table: a pandas frame with a row for each parameter, worst first. ``virial``: 1 in expectation; ``sd_ratio``,
            its root: sd of the draws over that of the posterior, with the standard error ``sd_ratio_se``.
            ``mean_error``: mean of the draws less that of the posterior, in posterior sds, with ``mean_error_se``, the
            standard error that autocorrelated draws of the right density have. ``ess``: effective draws, and ``rhat``:
            split R-hat (`sgtune.metrics.mixing`), of all draws looked at. ``mean`` and ``sd`` of the draws.
            ``problems``: what is wrong, of ``too wide``, ``too narrow``, ``off centre`` and ``slow``; empty if nothing
            is.
        n_draws: draws looked at, of all chains together.
        n_scored: those of them that have scores.
        score_rows: rows of the data in a score.
        data_terms: what the scores and densities cost, in data terms as in `sgtune.Budget`.
        impossible: share of 200 of the draws whose log density is -inf or nan; under `diagnose`'s ``most_terms`` that
            of the prior and the first 256 rows alone, unless all rows cost a tenth of it or less.
        not_finite: share of all draws that are not finite; they count in nothing else.
        acceptance_rate: of the chains' proposals; None for samplers without a Metropolis test.
        sd_error: root of the mean over parameters of (sd of the draws / sd of the posterior - 1)^2, Monte Carlo error
            included: that of ``sd_ratio``, less the noise of scoring some of the draws on some of the rows.
        forecast: what the race expected of one chain (`sgtune.tuning.at_horizon`): the same root over all directions,
            up to 200 parameters; with more it has the Monte Carlo error of means, too. None if not known.
        warnings: a line for each kind of error that was found, with the worst parameter and the number of others.
    """

    table: "pd.DataFrame" = field(repr=False)
    n_draws: int
    n_scored: int
    score_rows: int
    data_terms: int
    impossible: float
    not_finite: float
    acceptance_rate: float | None
    sd_error: float
    forecast: float | None
    warnings: list[str]

    def plot(self, most: int = 12) -> np.ndarray:
        """The ``most`` worst parameters: ratios of sds and errors of means, with two standard errors, beside what they
        should be. Returns the two axes.

        Raises:
            InputError: seaborn is not installed.
        """
        return plot_diagnosis(self.table.head(most))

    def __repr__(self) -> str:
        expected = "" if self.forecast is None else f", expected {self.forecast:.2g}"
        accepted = (
            "" if self.acceptance_rate is None else f"; {self.acceptance_rate:.0%} of proposals accepted"
        )
        lines = [
            f"Diagnosis({self.n_draws:,} draws of {len(self.table):,} parameters, {self.n_scored:,} scored; error of "
            f"sds {f'{self.sd_error:.2g}' if self.sd_error else 'below its noise'}{expected}{accepted})",
            *(f"  {line}" for line in self.warnings or ["nothing found"]),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return (
            f"{self.table.head(10)._repr_html_()}<p>{'<br>'.join(map(escape, repr(self).splitlines()))}</p>"
        )


def diagnose(
    model: Model,
    draws: Any,
    *,
    constrained: bool | None = None,
    acceptance_rate: float | None = None,
    forecast: float | None = None,
    preconditioner: Preconditioner | None = None,
    most_terms: int | None = None,
    tolerance: float = 0.1,
    seed: int = 0,
) -> Diagnosis:
    """What is wrong with ``draws`` of the posterior of ``model``, whoever made them, parameter by parameter.

    A parameter is named for its spread or its mean if the error is larger than ``tolerance`` posterior sds and
    significant: of exact draws about one call in a hundred names a parameter for its spread, and one in a hundred for
    its mean, however many parameters there are (Student's t of the effective draws, Bonferroni's correction). It is
    slow if it has fewer than 100 effective draws and its autocorrelation is significant. A slow one is called neither
    too narrow nor off centre, as a slow chain of the right density may be both.

    C, of the equations above, is estimated by regressing the draws on their scores, half of the chain for the other
    half, if at least five draws for each parameter have scores. Otherwise it is that of the preconditioner, P = L L'.
    Without one it is diagonal, and a parameter may be named for one that it is correlated with. A chain whose
    parameters are right one by one may still have wrong correlations, or miss a mode.

    Args:
        draws: of any sampler: an array of flat positions ``(n, D)``, or ``(c, n, D)`` for c chains; a position of the
            model with the leading axes n, or c and n; a `sgtune.Chain`, or a sequence of them. At most 10,000, evenly
            spaced, are looked at, and at most 1,000 scored.
        constrained: whether draws by name are values in the model's own terms, as ``mcmc.get_samples()`` of NumPyro has
            them, and not those that sgtune's samplers move, such as the logarithm of an sd. It must be said where the
            model knows both (``model.unconstrain``).
        acceptance_rate: of the draws' sampler, to be shown; None: that of the chains.
        forecast: the error that `sgtune.tune` expected, to be shown beside what the draws have; None: the chain's.
        preconditioner: of the run, see above; None: the chain's.
        most_terms: data terms that all this may cost. None: scores are over all data. Otherwise over all data if 200
            such scores are affordable, or else over fresh rows for each draw, with control variates at the mean of the
            draws, which leaves all expectations as they are. 200 densities of 256 rows, one score of all data and 200
            scores of a few rows are always made.
        tolerance: errors of fewer posterior sds are not named.
        seed: of the fresh rows.

    Raises:
        InputError: draws of another shape than the model's positions, fewer than 20 of a chain that are finite, or
            another argument is not allowed.
    """
    check_number("tolerance", tolerance, at_least=0)
    check_integer("seed", seed, at_least=0, at_most=LARGEST_SEED)
    if most_terms is not None:
        check_integer("most_terms", most_terms, at_least=1)
    chains = list(draws) if isinstance(draws, Sequence) and draws and hasattr(draws[0], "draws") else [draws]
    if acceptance_rate is None:
        rates = [chain.statistics["acceptance_rate"] for chain in chains if _is_tested(chain)]
        acceptance_rate = float(np.mean(rates)) if rates else None
    if forecast is None:
        forecast = getattr(chains[0], "forecast", None)
    if preconditioner is None and hasattr(chains[0], "arm"):
        preconditioner = chains[0].arm.get("preconditioner")
    kept, not_finite = _looked_at(model, _in_our_terms(model, draws, constrained))
    c, n, dimension = kept.shape
    at_once = min(SCORED, max(FEWEST_DRAWS, SCORED_NUMBERS // dimension))
    impossible, density_terms = _impossible(model, _evenly(kept, at_once).reshape(-1, dimension), most_terms)
    some, gradients, rows, terms = _scored(model, kept, at_once, most_terms, seed)
    mean, sd = kept.mean(axis=(0, 1), dtype=np.float64), kept.std(axis=(0, 1), dtype=np.float64)
    found = effective_draws(kept)
    moves = sd > 0
    squares = ((kept - mean.astype(np.float32)) / np.where(moves, sd, 1).astype(np.float32)) ** 2
    of_draws = _relative_noise(squares, moves.astype(np.float64)) / np.sqrt(
        np.minimum(effective_draws(squares), c * n)
    )
    columns, sd_error = _errors(
        some, gradients, found, np.where(moves, of_draws, 0), preconditioner, tolerance
    )
    is_slow = moves & (found < FEWEST_EFFECTIVE) & _is_correlated(kept)
    named = {
        "too wide": columns.pop("too wide"),
        "too narrow": columns.pop("too narrow") & ~is_slow,
        "off centre": columns.pop("off centre") & ~is_slow,
        "slow": is_slow,
    }
    is_wrong = np.any([named[kind] for kind in KINDS if kind != "slow"], axis=0)
    beyond = np.where(is_slow & ~is_wrong, 1 / np.sqrt(found), columns.pop("beyond"))
    order = np.lexsort((-beyond, ~is_slow, ~is_wrong))
    import pandas as pd

    table = pd.DataFrame(
        {
            **columns,
            "ess": np.where(moves, found, 1.0),
            "rhat": split_rhat(kept),
            "mean": mean,
            "sd": sd,
            "problems": [", ".join(k for k in KINDS if named[k][i]) for i in range(dimension)],
        },
        index=pd.Index(parameter_names(model), name="parameter"),
    ).iloc[order]
    return Diagnosis(
        table=table,
        n_draws=c * n,
        n_scored=some.shape[0] * some.shape[1],
        score_rows=rows,
        data_terms=terms + density_terms,
        impossible=impossible,
        not_finite=not_finite,
        acceptance_rate=acceptance_rate,
        sd_error=sd_error,
        forecast=forecast,
        warnings=_warnings(table, c * n, impossible, not_finite),
    )


def affordable(chains: Sequence[Any], share: float) -> int:
    """The data terms that a check of ``chains`` may take: the ``share`` of theirs, or 200 scores of 1,000 rows with
    control variates, one of all data, and 200 densities of 256 rows, if these are more."""
    model = chains[0].model
    least = 2 * FEWEST_SCORED * min(FEWEST_ROWS, model.n_data) + model.n_data + _density_terms(model, 0)
    return max(int(share * sum(chain.data_terms for chain in chains)), least)


def check_run(run: Any) -> tuple[Diagnosis | None, list[str]]:
    """The diagnosis of a `sgtune.Chain`, or of a sequence of them, and its warnings, for `SHARE_OF_RUN` of the run's
    data terms; or None and what failed, for the run is worth more than its check."""
    chains = list(run) if isinstance(run, Sequence) else [run]
    try:
        found = diagnose(chains[0].model, run, most_terms=affordable(chains, SHARE_OF_RUN))
    except Exception as error:
        return None, [f"check: {' '.join(str(error).split()) or type(error).__name__}"]
    return found, found.warnings


def parameter_names(model: Model) -> list[str]:
    """A name for each of the D parameters, in the order of flat positions, such as ``weights[3]``."""
    names = []
    for path, leaf in jax.tree_util.tree_flatten_with_path(model.position_shape)[0]:
        name = jax.tree_util.keystr(path, simple=True, separator=".") or "position"
        places = np.ndindex(*leaf.shape)
        names += [name + (f"[{','.join(map(str, place))}]" if place else "") for place in places]
    return names


def _is_tested(chain: Any) -> bool:
    return "acceptance_rate" in getattr(chain, "statistics", {})


def _in_our_terms(model: Model, draws: Any, constrained: bool | None) -> Any:
    """Draws by name as positions of the model, if they are not.

    Raises:
        InputError: it is not said which they are, or they do not fit the model.
    """
    knows_both = isinstance(draws, Mapping) and model.unconstrain is not None
    if constrained is None and knows_both:
        raise InputError(
            f"constrained: None is not allowed for draws by name of {model.name!r}; it must be True for values of its "
            "sites, such as mcmc.get_samples(), or False for unconstrained ones, such as chain.positions"
        )
    if constrained and not knows_both:
        raise InputError(
            "constrained: True is not allowed; it needs draws by name, and a model with unconstrain, such as one of "
            "from_numpyro"
        )
    return unconstrained(model, draws) if constrained else draws


def as_chains(model: Model, draws: Any) -> Float[np.ndarray, "c n D"]:
    """Draws in any form that `diagnose` takes, as flat rows of chains; of chains of different lengths the last draws,
    as many as the shortest has.

    Raises:
        InputError: they are not draws of the model's positions.
    """
    d = model.dimension
    if hasattr(draws, "draws"):
        return as_chains(model, draws.draws)
    if isinstance(draws, Sequence) and draws and hasattr(draws[0], "draws"):
        n = min(len(chain.draws) for chain in draws)
        return np.stack([as_chains(model, chain.draws[len(chain.draws) - n :])[0] for chain in draws])
    shapes = [leaf.shape for leaf in jax.tree.leaves(model.position_shape)]
    if jax.tree.structure(draws) == jax.tree.structure(model.position_shape):
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(draws)]
        for n_leading in (1, 2):
            fits = all(
                leaf.ndim == n_leading + len(shape) and leaf.shape[n_leading:] == shape
                for leaf, shape in zip(leaves, shapes, strict=True)
            )
            leading = {leaf.shape[:n_leading] for leaf in leaves}
            # A scalar position has no axis of its own: (n, 1) are n draws of it, and not n chains.
            is_flat = shapes == [()] and n_leading == 2 and leaves[0].shape[1] == 1
            if fits and len(leading) == 1 and not is_flat:
                (lead,) = leading
                flat = to_matrix([leaf.reshape(-1, *leaf.shape[n_leading:]) for leaf in leaves])
                return flat.reshape(*(1, *lead)[-2:], d)
    if hasattr(draws, "shape") or isinstance(draws, list | tuple):
        try:
            array = np.asarray(draws, np.float32)
        except (TypeError, ValueError):
            array = np.empty(())
        if array.ndim in (2, 3) and array.shape[-1] == d:
            return array.reshape(*(1, *array.shape)[-3:])
    given = jax.tree.map(np.shape, draws)
    raise InputError(
        f"draws: shape {given} is not allowed; {model.name!r} needs (n, {d}), (chains, n, {d}), a position with one or "
        "two leading axes, or chains of sgtune"
    )


def _looked_at(model: Model, draws: Any) -> tuple[Float[np.ndarray, "c n D"], float]:
    """Evenly spaced draws, all finite, and the share of all draws that are not finite.

    Raises:
        InputError: fewer than 20 of each chain are finite.
    """
    chains = as_chains(model, draws)
    is_finite = np.isfinite(chains).all(axis=2)
    not_finite = float(1 - is_finite.mean()) if is_finite.size else 0.0
    (chains,) = _good(is_finite, "draws are finite", chains)
    most = min(LOOKED_AT, LOOKED_AT_NUMBERS // model.dimension) // len(chains)
    return _evenly(chains, max(FEWEST_DRAWS, most)), not_finite


def _good(
    is_good: Bool[np.ndarray, "c n"], what: str, *arrays: Float[np.ndarray, "c n D"]
) -> list[Float[np.ndarray, "k m D"]]:
    """The good entries of the chains that have at least half as many as the best one, as many of each: one that left
    early says nothing of the others.

    Raises:
        InputError: no chain has 20.
    """
    counts = is_good.sum(axis=1)
    most = int(counts.max(initial=0))
    if most < FEWEST_DRAWS:
        raise InputError(
            f"draws: {most} of a chain's {is_good.shape[1]} {what}; at least {FEWEST_DRAWS} must be"
        )
    if is_good.all():
        return list(arrays)
    lives = counts >= max(FEWEST_DRAWS, most / 2)
    n = int(counts[lives].min())
    return [
        np.stack([own[good][:n] for own, good in zip(array[lives], is_good[lives], strict=True)])
        for array in arrays
    ]


def _evenly(chains: Float[np.ndarray, "c n D"], most: int) -> Float[np.ndarray, "c k D"]:
    n = chains.shape[1]
    return chains if n <= most else chains[:, np.linspace(0, n - 1, most).astype(int)]


def _scored(
    model: Model, kept: Float[np.ndarray, "c n D"], most: int, most_terms: int | None, seed: int
) -> tuple[Float[np.ndarray, "b k D"], Float[np.ndarray, "b k D"], int, int]:
    """Some draws and their scores, of the chains that have scores; the rows in a score, and the data terms that they
    took."""
    c, n_data = len(kept), model.n_data
    rows = n_data
    left = 0 if most_terms is None else most_terms - _density_terms(model, most_terms)
    # Of each chain at least `FEWEST_DRAWS`.
    most, fewest = max(most, FEWEST_DRAWS * c), max(FEWEST_SCORED, FEWEST_DRAWS * c)
    if most_terms is not None and left < fewest * n_data:
        left = max(0, left - n_data)
        most = min(most, max(fewest, left // (2 * FEWEST_ROWS)))
        # A power of two, so that checks share programs.
        rows = 1 << max(1, left // (2 * most)).bit_length() - 1
        rows = n_data if rows > n_data // 2 else rows
    elif most_terms is not None:
        most = min(most, left // n_data)
    some = _evenly(kept, max(FEWEST_DRAWS, most // c))
    flat = some.reshape(-1, some.shape[2])
    terms = len(flat) * n_data
    if rows == n_data:
        found = scores(model, flat)
    else:
        sampler, estimator = resolve_sampler("sgld-cv")
        centre = unflatten(model, flat.mean(axis=0, dtype=np.float64).astype(np.float32))
        constants = shared_constants(model, sampler, estimator, centre)
        found = stochastic_scores(model, flat, rows, seed, gradient=estimator, constants=constants)
        terms = 2 * len(flat) * rows + n_data
    found = found.reshape(some.shape)
    # Scores are not finite where the density is zero or not known; `_impossible` counts such draws.
    some, found = _good(np.isfinite(found).all(axis=2), "scored draws have a finite score", some, found)
    return some, found, rows, terms


@partial(jax.jit, static_argnums=(3, 4))
def _log_densities(density: Density, positions: PyTree, data: PyTree, n_rows: int, at_once: int) -> Array:
    rows = data if n_rows == number_of_rows(data) else rows_between(data, 0, n_rows)
    return jax.lax.map(lambda p: log_posterior(density, p, rows), positions, batch_size=at_once)


@named_faults()
def _impossible(model: Model, flat: Float[np.ndarray, "n D"], most_terms: int | None) -> tuple[float, int]:
    """The share of draws whose log density is -inf or nan, and the data terms that it took."""
    # Their number does not depend on the draws, so that checks share a program.
    flat = flat[np.linspace(0, len(flat) - 1, DENSITY_DRAWS).astype(int)]
    terms = _density_terms(model, most_terms)
    positions, n_rows = from_matrix(model, flat), terms // DENSITY_DRAWS
    at_once = score_chunk(model, DENSITY_DRAWS)
    values = np.asarray(_log_densities(density_of(model), positions, model.data, n_rows, at_once))
    return float((np.isneginf(values) | np.isnan(values)).mean()), terms


def _density_terms(model: Model, most_terms: int | None) -> int:
    of_all = DENSITY_DRAWS * model.n_data
    if most_terms is None or of_all <= DENSITY_SHARE * most_terms:
        return of_all
    return DENSITY_DRAWS * min(DENSITY_ROWS, model.n_data)


def _is_correlated(kept: Float[np.ndarray, "c n D"]) -> np.ndarray:
    """Whether neighbouring draws of a parameter are correlated, beyond what independent draws of D parameters show."""
    from scipy.special import ndtri

    c, n, dimension = kept.shape
    least = -ndtri(FALSE_ALARMS / (2 * dimension)) / np.sqrt(c * n)
    found = np.empty(dimension)
    at_once = max(1, 2**22 // (c * n))
    for start in range(0, dimension, at_once):
        x = kept[:, :, start : start + at_once].astype(np.float64)
        x -= x.mean(axis=(0, 1))
        both = np.einsum("cnd,cnd->d", x[:, 1:], x[:, :-1])
        found[start : start + at_once] = both / np.maximum(
            np.einsum("cnd,cnd->d", x, x), np.finfo(np.float64).tiny
        )
    return found > least


def _errors(
    some: Float[np.ndarray, "c n D"],
    gradients: Float[np.ndarray, "c n D"],
    effective: Float[np.ndarray, " D"],
    of_draws: Float[np.ndarray, " D"],
    preconditioner: Preconditioner | None,
    tolerance: float,
) -> tuple[dict[str, np.ndarray], float]:
    """Columns of errors of sds and means, whether they are named, how far the largest is beyond its noise, and the
    root mean square error of sds.

    Args:
        effective: draws, of each parameter, of all that are looked at.
        of_draws: relative standard errors of their sds.
    """
    from scipy.special import stdtrit

    dimension = some.shape[2]
    x = some.astype(np.float64) - some.mean(axis=(0, 1), dtype=np.float64)
    moved, variances = _moved(x, gradients.astype(np.float64), preconditioner)
    spread, shift = -x * moved / variances, -moved / np.sqrt(variances)
    n = x.shape[0] * x.shape[1]
    virial, mean_error = spread.mean(axis=(0, 1)), shift.mean(axis=(0, 1))
    n_spread = np.minimum(effective_draws(spread), n)
    n_shift = np.minimum(effective_draws(shift), n)
    sd_ratio = np.sqrt(np.maximum(virial, 0.0))
    relative = _relative_noise(spread, virial) / np.sqrt(n_spread)
    mean_se = np.maximum(shift.std(axis=(0, 1)), 1e-12) / np.sqrt(n_shift)
    level = FALSE_ALARMS / dimension

    def beyond(error, se, n_effective):
        """How far an error is beyond what noise makes of none; few effective draws hardly know their noise."""
        degrees = np.maximum(np.minimum(n_effective, effective) - 1, 1)
        return np.abs(error) + se * stdtrit(degrees, level / 2)

    of_sd, of_mean = beyond(sd_ratio - 1, relative, n_spread), beyond(mean_error, mean_se, n_shift)
    is_off = (of_sd > 0) & (np.abs(sd_ratio - 1) > tolerance)
    sd_se = relative * np.maximum(sd_ratio, relative)
    columns = {
        "virial": virial,
        "sd_ratio": sd_ratio,
        "sd_ratio_se": sd_se,
        "mean_error": mean_error,
        "mean_error_se": mean_se,
        "too wide": is_off & (sd_ratio > 1),
        "too narrow": is_off & (sd_ratio < 1),
        "off centre": (of_mean > 0) & (np.abs(mean_error) > tolerance),
        "beyond": np.maximum(of_sd, of_mean),
    }
    square = float(np.mean((sd_ratio - 1) ** 2 - np.maximum(sd_se**2 - (sd_ratio * of_draws) ** 2, 0)))
    return columns, float(np.sqrt(max(square, 0.0)))


def _relative_noise(
    spread: Float[np.ndarray, "c n D"], virial: Float[np.ndarray, " D"]
) -> Float[np.ndarray, " D"]:
    """Of the root of the mean of ``spread``, which is ``virial``, from one draw: relative, because it grows with it; at
    least that of a Gaussian."""
    sds = spread.std(axis=(0, 1), dtype=np.float64)
    return np.divide(sds, np.abs(virial), out=np.zeros(sds.shape), where=virial != 0).clip(2**0.5) / 2


def _moved(
    x: Float[np.ndarray, "c n D"],
    gradients: Float[np.ndarray, "c n D"],
    preconditioner: Preconditioner | None,
) -> tuple[Float[np.ndarray, "c n D"], Float[np.ndarray, "..."]]:
    """C s of each draw, and C_ii, for each draw or for all."""
    c, n, dimension = x.shape
    varied = gradients - gradients.mean(axis=(0, 1))
    own = np.einsum("cnd,cnd->d", varied, varied) / (c * n)
    # Of a parameter that does not move only the score tells its scale.
    alone = np.abs(np.einsum("cnd,cnd->d", x, varied)) / (c * n)
    alone = np.where(alone > 0, alone, np.sqrt(own)) / np.where(own > 0, own, 1.0)
    alone = np.where(alone > 0, alone, 1.0)
    if c * n >= DRAWS_PER_PARAMETER * dimension and dimension > 1:
        moved, variances = np.empty_like(x), np.empty((1, n, dimension))
        halves = slice(0, n // 2), slice(n // 2, n)
        for half, other in (halves, halves[::-1]):
            of_scores, of_draws = (
                (part[:, other] - part[:, other].mean(axis=(0, 1))).reshape(-1, dimension)
                for part in (gradients, x)
            )
            sizes = np.maximum(of_scores.std(axis=0), np.finfo(np.float32).tiny)
            matrix = -np.linalg.lstsq(of_scores / sizes, of_draws)[0] / sizes[:, None]
            poor = ~(np.diagonal(matrix) >= alone / 2)
            matrix[:, poor] = np.diag(alone)[:, poor]
            moved[:, half], variances[:, half] = gradients[:, half] @ matrix, np.diagonal(matrix)
        return moved, variances
    if preconditioner is not None and preconditioner.factor.ndim == 2:
        factor = preconditioner.factor
        return gradients @ factor @ factor.T, np.sum(factor**2, axis=1)
    return gradients * alone, alone


def _warnings(table: "pd.DataFrame", n_draws: int, impossible: float, not_finite: float) -> list[str]:
    """A line for each kind of error, with its worst parameter."""
    lines = []
    if not_finite:
        lines.append(f"diverged: {100 * not_finite:.2g}% of the draws are not finite")
    if impossible:
        lines.append(f"impossible: {100 * impossible:.2g}% of the draws have a log density of -inf")
    for kind in KINDS:
        named = table[[kind in problems.split(", ") for problems in table["problems"]]]
        if named.empty:
            continue
        if kind == "slow":
            worst = named.loc[named["ess"].idxmin()]
            what = (
                f"{worst.name} has {worst['ess']:.3g} effective draws of {n_draws}, with a split R-hat of "
                f"{worst['rhat']:.2f}"
            )
        elif kind == "off centre":
            worst = named.loc[named["mean_error"].abs().idxmax()]
            what = (
                f"the mean of {worst.name} is {worst['mean_error']:+.2g} ± {worst['mean_error_se']:.1g} posterior sds "
                "off"
            )
        else:
            worst = named.loc[(named["sd_ratio"] - 1).abs().idxmax()]
            what = f"{worst.name} has {worst['sd_ratio']:.2f} ± {worst['sd_ratio_se']:.1g} times its posterior sd"
        others = f", and {len(named) - 1} others are {kind}" if len(named) > 2 else ""
        others = f", and 1 other is {kind}" if len(named) == 2 else others
        lines.append(f"{kind}: {what}{others}")
    return lines
