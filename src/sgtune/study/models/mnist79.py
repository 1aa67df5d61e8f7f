"""Bayesian logistic regression of nines against sevens (Shang et al. 2015, Sect. 4.2).

Their likelihood 1 / (1 + exp(-y w' x)), y = -1 or 1, is `sgtune.study.models.logistic`'s; their prior is N(0, I).
"""

from functools import partial
from pathlib import Path

from sgtune.model import Model
from sgtune.study.data import classification
from sgtune.study.models import logistic

__all__ = ["from_arrays", "load"]

from_arrays = partial(logistic.from_arrays, name="mnist79", prior_variance=1.0)


def load(data_dir: str | Path) -> Model:
    """Projected digits from ``data_dir/mnist79``.

    Raises:
        DataError: a file is missing, truncated, or of another dtype or shape.
    """
    arrays = classification.load(data_dir, "mnist79")
    return from_arrays(
        arrays["train_inputs"],
        arrays["train_labels"],
        test_data={"inputs": arrays["test_inputs"], "targets": arrays["test_labels"]},
        data_dir=data_dir,
        shuffle_seed=None,
        checksum=arrays["checksum"],
    )
