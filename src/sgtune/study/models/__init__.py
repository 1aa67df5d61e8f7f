"""Models, by name."""

from pathlib import Path

from sgtune.errors import InputError, check_choice
from sgtune.model import Model
from sgtune.study.config.sections import FACTS
from sgtune.study.data import ood_images as out_of_distribution
from sgtune.study.models import bnn, logistic, pmf

__all__ = ["MODELS", "load_model"]

MODELS = {"logistic": logistic.load, "pmf": pmf.load, "bnn": bnn.load}
"""Loaders: ``data_dir -> Model``."""


def load_model(name: str, data_dir: str | Path, *, ood: str | Path | None = None) -> Model:
    """The model ``name`` with its data from ``data_dir``, where its MAP is kept too.

    Args:
        ood: file of the rule prepare_ood, whose inputs become ``test_data["ood"]`` (name, inputs, missing); only
            evaluation needs them.

    Raises:
        InputError: no such model, or it has no such inputs.
        DataError: a data file is missing or damaged.
    """
    check_choice("model", name, MODELS)
    if ood is not None and not FACTS[name].out_of_distribution:
        raise InputError(
            f"ood: {str(ood)!r} is not allowed; model {name!r} has no out-of-distribution inputs"
        )
    model = MODELS[name](data_dir)
    if ood is not None:
        model.test_data["ood"] = out_of_distribution.load(ood)
    return model
