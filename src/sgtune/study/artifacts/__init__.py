"""Tables and figures of a run, from its result files.

`REQUIRES` says which kinds of files an artifact is made from, `MODEL_OF` of which model (None: of all),
`FORMS` whether it is a table or a figure; `requested` says which artifacts a run has, `category_of` where a
report puts them, and `labels_of` what it calls them. They import nothing heavy: the workflow reads them to
decide its targets and inputs. `TABLES` and `FIGURES` map a name to its maker, ``maker(records) -> Table`` or
``-> matplotlib.figure.Figure``, and import what they need on first use; ``records`` is the dict of
`records.load_records`, kind -> list of records.
"""

from sgtune.study.artifacts.studies import ARTIFACTS, category_of, labels_of, requested

__all__ = [
    "FIGURES",
    "FORMS",
    "MODEL_OF",
    "REQUIRES",
    "TABLES",
    "category_of",
    "labels_of",
    "make_figure",
    "make_table",
    "requested",
]

REQUIRES = {name: artifact.kinds for name, artifact in ARTIFACTS.items()}
MODEL_OF = {name: artifact.model for name, artifact in ARTIFACTS.items()}
FORMS = {name: artifact.form for name, artifact in ARTIFACTS.items()}


def __getattr__(name: str) -> object:
    if name in __all__:
        from sgtune.study.artifacts import make

        return getattr(make, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
