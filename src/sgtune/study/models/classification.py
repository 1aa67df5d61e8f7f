"""The models of the CCAdL paper's data sets, by the name of the set."""

from pathlib import Path

from sgtune.errors import check_choice
from sgtune.model import Model
from sgtune.study.data.classification import SETS
from sgtune.study.models import drbm, mnist79

__all__ = ["load_set_model"]


def load_set_model(name: str, data_dir: str | Path) -> Model:
    """The paper's model of the set ``name`` of `SETS` with its data from ``data_dir``, where its MAP is kept too.

    Raises:
        InputError: no such set.
        DataError: a data file is missing or damaged.
    """
    entry = SETS[check_choice("data set", name, SETS)]
    return mnist79.load(data_dir) if entry.n_hidden is None else drbm.load(data_dir, name)
