"""Cost tables for runs of the pipeline in tests: every step of a model costs the same."""

from collections.abc import Mapping

from sgtune.study.catalogue import MODELS
from sgtune.study.config.sections import settings_of, shapes_of
from sgtune.study.posteriors import pmf


def costs_of(config: Mapping, model: str, seconds_per_step: float) -> dict:
    """The part of a cost table for ``model`` of ``config``, with all shapes that its jobs ask for."""
    of_data = config["data"][model]
    n_data = MODELS[model].n_data(of_data)
    rows = [
        {
            "sampler": sampler,
            "batch_size": batch_size,
            "n_leapfrog": leapfrogs,
            "seconds_per_step": seconds_per_step,
        }
        for sampler, batch_size, leapfrogs in shapes_of(settings_of(config, "cost", model), n_data)
    ]
    return {"n_data": n_data, "dimension": _dimension(model, of_data), "rows": rows}


def _dimension(model: str, of_data: Mapping) -> int:
    known = MODELS[model].dimension(of_data)
    if known is not None:
        return known
    # The numbers of users and items of the simulated ratings determine D.
    ratings = pmf.simulate(of_data["simulated"])
    return 20 * sum(int(ratings[:, column].max()) for column in (0, 1)) + 80
