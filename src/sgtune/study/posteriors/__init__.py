"""The posteriors of the papers: data sets and models, by name. Import the single module that you need."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from sgtune.support.errors import InputError, check_choice

if TYPE_CHECKING:
    from sgtune.model import Model

__all__ = ["load_model"]


def load_model(name: str, data_dir: str | Path, *, ood: str | Path | None = None) -> "Model":
    """The model ``name``, or that of a set of CCAdL's, with its data from ``data_dir``, where its MAP is kept too.

    Args:
        ood: file of the rule prepare_ood, whose inputs become ``test_data["ood"]`` (name, inputs, missing); only
            evaluation needs them.

    Raises:
        InputError: no such model, or it has no such inputs.
        DataError: a data file is missing or damaged.
    """
    from sgtune.study.catalogue import MODELS

    if ood is not None and not (name in MODELS and MODELS[name].out_of_distribution):
        raise InputError(
            f"ood: {str(ood)!r} is not allowed; model {name!r} has no out-of-distribution inputs"
        )
    if name not in MODELS:
        from sgtune.study.posteriors import classification

        check_choice("model", name, (*MODELS, *classification.SETS))
        return classification.load(name, data_dir)
    module, _, loader = MODELS[name].loader.partition(":")
    model = getattr(import_module(module), loader)(data_dir)
    if ood is not None:
        from sgtune.study.posteriors.bnn import load_ood

        model.test_data["ood"] = load_ood(ood)
    return model
