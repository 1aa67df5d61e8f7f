"""`tune_and_sample`: races, pilots and chains in one call."""

from typing import Any

from sgtune.model import Model
from sgtune.samplers import Sampler
from sgtune.sampling.budget import Budget, check_budget
from sgtune.sampling.chain import Chains
from sgtune.support.errors import check_integer
from sgtune.tuning.tune import tune

__all__ = ["RACE_SHARE", "tune_and_sample"]

RACE_SHARE = 0.1
"""R, the budget of the arm that races longest, in that of a chain: forecasts reach ten times what an arm has run
(`sgtune.tuning.horizon.at_horizon`), and a race of 36 to 120 arms spends 8 to 17 R, about as much as one chain."""


def tune_and_sample(
    model: Model,
    sampler: str | Sampler,
    *,
    budget: Budget,
    chains: int = 4,
    horizon: Budget | None = None,
    seed: int = 0,
    kept_draws: int | None = None,
    n_starts: int | None = None,
    check: bool = True,
    **options: Any,
) -> Chains:
    """Choose the hyperparameters of ``sampler`` for ``model``, and run ``chains`` with them.

    It is `sgtune.tune` and `sgtune.TuningResult.sample` in one call. Whoever wants to look at the arms before the run
    calls these.

    Args:
        model, sampler, seed: as for `sgtune.tune`.
        budget: of each chain, as for `sgtune.sample`. The longest arm of a race has a tenth of it (`RACE_SHARE`). All
            races and pilots together then spent 0.5 to 17 times ``budget`` on the study of posteriors that users bring,
            on six of its eight posteriors at most 3 times; the chains spend ``chains`` times ``budget``. ``run.cost``
            has both.
        chains: how many.
        horizon: the length of the run that the arm is chosen for, in the currency of ``budget``. None: ``budget``, one
            chain's: more chains have less variance, but the same bias.
        kept_draws: as for `sgtune.sample`.
        n_starts: starts of the search for the MAP, if there is one; None: ``chains``.
        check: as for `sgtune.TuningResult.sample`.
        options: others of `sgtune.tune`, such as ``tuner``, ``preconditioner`` and ``cost``. ``position`` and
            ``centre`` are those of the arms; chains start about the centre of the coordinates that tuning ended with.

    Returns:
        The chains. ``tuning`` is the `TuningResult`; ``cost``, which is printed with them, has the data terms and
        seconds of races, pilots and chains; ``to_arviz()`` has the record of the tuning.

    Raises:
        InputError: an argument is not allowed.
        AllDivergedError: no arm stays finite.
    """
    check_budget(budget)
    check_integer("chains", chains, at_least=1)
    ((currency, amount),) = budget.given().items()
    share = RACE_SHARE * amount if currency == "seconds" else max(1, round(RACE_SHARE * amount))
    n_starts = chains if n_starts is None else n_starts
    result = tune(
        model,
        sampler,
        budget=Budget(**{currency: share}),
        horizon=budget if horizon is None else horizon,
        seed=seed,
        n_starts=n_starts,
        **options,
    )
    shared = {name: options[name] for name in ("cost", "replicate") if name in options}
    if result.searched:
        shared["n_starts"] = n_starts
    return result.sample(budget, chains=chains, seed=seed, kept_draws=kept_draws, check=check, **shared)
