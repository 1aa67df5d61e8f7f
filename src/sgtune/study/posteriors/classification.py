"""The models of the CCAdL paper's data sets, by the name of the set."""

from functools import partial
from pathlib import Path

from sgtune.model import Model
from sgtune.study.posteriors import drbm, mnist79
from sgtune.study.posteriors.classification_data import SETS, load
from sgtune.support.errors import check_choice

__all__ = ["load_set_model"]


def load_set_model(name: str, data_dir: str | Path) -> Model:
    """The paper's model of the set ``name`` of `SETS` with its data from ``data_dir``, where its MAP is kept too.

    It is the logistic regression `mnist79`, or a model ``drbm-{name}`` with the paper's hidden units (Table 2).

    Raises:
        InputError: there is no set of this name.
        DataError: a data file is missing or truncated, or has another dtype or shape.
    """
    entry = SETS[check_choice("data set", name, SETS)]
    from_arrays = mnist79.from_arrays
    if entry.n_hidden is not None:
        sizes = {"n_hidden": entry.n_hidden, "n_classes": entry.n_classes}
        from_arrays = partial(drbm.from_arrays, name=f"drbm-{name}", **sizes)
    arrays = load(data_dir, name)
    return from_arrays(
        arrays["train_inputs"],
        arrays["train_labels"],
        test_data={"inputs": arrays["test_inputs"], "targets": arrays["test_labels"]},
        data_dir=data_dir,
        shuffle_seed=None,
        checksum=arrays["checksum"],
    )
