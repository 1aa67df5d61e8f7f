"""Tables and figures of a run, from its result files.

`REQUIRES` says which kinds of files an artifact is made from, and imports nothing heavy: the workflow reads
it to decide a rule's inputs. `TABLES` and `FIGURES` map a name to its maker, ``maker(records) -> Table`` or
``-> matplotlib.figure.Figure``, and import what they need on first use; ``records`` is the dict of
`records.load_records`, kind -> list of records.
"""

__all__ = ["FIGURES", "REQUIRES", "TABLES", "make_figure", "make_table"]

REQUIRES = {
    "table1": ("evaluation",),
    "table4": ("tuning",),
    "table5": ("tuning",),
    "table6": ("evaluation",),
    "regret": ("tuning", "sweep"),
    "tuning_time": ("tuning",),
    "published_comparison": ("evaluation", "published"),
    "figure1": ("estimates",),
    "figure2": ("estimates",),
    "figure3": ("evaluation",),
    "figure3_scaled": ("evaluation",),
    "widths": ("widths",),
    "regret_dots": ("tuning", "sweep"),
}


def __getattr__(name: str) -> object:
    if name in __all__:
        from sgtune.artifacts import make

        return getattr(make, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
