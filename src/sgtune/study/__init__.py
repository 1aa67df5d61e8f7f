"""The studies of the papers: their data, models, jobs and artifacts. Nothing outside this package imports it.

model = sgtune.study.load_model("logistic", data_dir="results/quick/data")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgtune.study.posteriors import load_model

__all__ = ["load_model"]


def __getattr__(name: str) -> Any:
    if name != "load_model":
        raise AttributeError(f"module 'sgtune.study' has no attribute {name!r}")
    from sgtune.study.posteriors import load_model

    return load_model
