"""Tables and figures of a run, from its result files.

What there is stands in `sgtune.study.catalogue`; `artifact` is the entry of one, `artifacts_of_run` says which a run
makes, `category_of` where a report puts them, `labels_of` and `caption_of` what it calls them and says of them. They
import nothing heavy: the workflow reads them to decide its targets and inputs. `TABLES` and `FIGURES` map a name to its
maker, ``maker(records) -> Table`` or ``-> matplotlib.figure.Figure``, and import what they need on first use;
``records`` is the dict of `records.load_records`, kind -> list of records. `make_table` and `make_figure` make those of
further studies (`artifacts_of`), too.
"""

from sgtune.study.report.artifacts import (
    artifact,
    artifacts_of,
    artifacts_of_run,
    caption_of,
    category_of,
    form_of,
    labels_of,
    requested,
)

__all__ = [
    "FIGURES",
    "TABLES",
    "artifact",
    "artifacts_of",
    "artifacts_of_run",
    "caption_of",
    "category_of",
    "form_of",
    "labels_of",
    "make_figure",
    "make_table",
    "requested",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        from sgtune.study.report import make

        return getattr(make, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
