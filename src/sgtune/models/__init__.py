"""Models, by name."""

from pathlib import Path

from sgtune.errors import check_choice
from sgtune.models import bnn, logistic, pmf
from sgtune.models.base import Model, define_model

__all__ = ["MODELS", "Model", "define_model", "load_model"]

MODELS = {"logistic": logistic.load, "pmf": pmf.load, "bnn": bnn.load}
"""Loaders: ``data_dir -> Model``."""


def load_model(name: str, data_dir: str | Path) -> Model:
    """The model ``name`` with its data from ``data_dir``, where its MAP is kept too.

    Raises:
        InputError: no such model.
        DataError: its data file is missing or damaged.
    """
    check_choice("model", name, MODELS)
    return MODELS[name](data_dir)
