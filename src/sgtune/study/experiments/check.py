"""The check of chains of a tuned sampler, parameter by parameter (`sgtune.diagnose`), on a user's model."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float

from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import Budget
from sgtune.sampling.chain import sample
from sgtune.sampling.diagnosis import parameter_names
from sgtune.study.pipeline.parts import Task
from sgtune.study.pipeline.plan import CHECKED_CHAINS
from sgtune.support.errors import InputError

FIRST = "mamba"
"""The tuner whose arm is checked, if it chose one; otherwise the first that did."""

MOST = 1_000
"""So many parameters, the worst, are kept."""


def check_tuned(
    task: Task,
    tuned: Iterable[Mapping],
    section: Mapping,
    draws: Float[np.ndarray, "n D"] | None = None,
) -> dict:
    """Chains of the arm that one tuner chose, each as long as an evaluation run, from starts wider than the posterior.

    Args:
        tuned: the records of `sgtune.study.experiments.tune.tune_sampler`.
        section: the configuration's section ``evaluation``.
        draws: of NUTS, in the coordinates of the model; None without a reference.

    Returns:
        ``tuner``, ``arm``, ``chains``, ``n_samples`` of each, ``warnings``, ``dimension``, and ``parameters``: records
        of `sgtune.sampling.diagnosis.Diagnosis.table`, the worst first, with ``nuts_mean`` and ``nuts_sd``; none where
        no tuner found an arm, or the chains have too few finite draws.
    """
    found = sorted((one for one in tuned if one["best"]), key=lambda one: one["tuner"] != FIRST)
    about = {"tuner": found[0]["tuner"] if found else FIRST, "chains": CHECKED_CHAINS}
    about["dimension"] = task.model.dimension
    if not found:
        return {**about, "arm": None, "n_samples": 0, "warnings": ["no tuner found an arm"], "parameters": []}
    arm, system = Arm(**found[0]["best"]), task.model.preconditioner
    # In the user's own parameters.
    model = task.model if system is None else task.model.original
    options = {"budget": Budget(seconds=section["seconds"]), "kept_draws": section["kept_draws"]}
    options |= {"preconditioner": "none" if system is None else system, "cost": task.cost, "seed": task.seed}
    run = sample(model, task.sampler, **arm, replicate="check", chains=CHECKED_CHAINS, **options)
    about |= {"arm": arm.to_record(), "n_samples": run[0].n_samples}
    try:
        checked = run.check(forecast=found[0].get("forecast"))
    except InputError as problem:
        # Fewer draws that are finite than can be checked.
        return {**about, "warnings": [*run.warnings, str(problem)], "parameters": []}
    table = checked.table.head(MOST)
    if draws is not None:
        moved = draws if system is None else system.positions(draws)
        moments = {
            "nuts_mean": moved.mean(axis=0, dtype=np.float64),
            "nuts_sd": moved.std(axis=0, dtype=np.float64),
        }
        table = table.join(pd.DataFrame(moments, index=pd.Index(parameter_names(model), name="parameter")))
    rows = table.reset_index().to_dict("records")
    return {**about, "warnings": [*run.warnings, *checked.warnings], "parameters": rows}
