"""A table or a figure of the study."""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Artifact"]


class Artifact(NamedTuple):
    """What the study knows of a table or figure.

    Attributes:
        maker: ``module:function`` below `sgtune.study.artifacts`, or of a further study below its own package, imported
            when it is called; ``function(records, **options)`` returns a `Table` or a Matplotlib figure.
        kinds: of the files that it is made from.
        title: what a reader calls it.
        caption: below it in a report, as reStructuredText.
        model: of which it is; None: of all.
        options: for the maker.
        without: tuners that it leaves out.
        needs_reference: whether it shows only models with a reference.
        needs_loss: shows only models whose arms are judged by this loss; None: all.
        needs_horizons: whether it shows only models tuned for several horizons.
        study: the further study (`sgtune.study.catalogue.studies`) that it is of; empty: the main one.
    """

    maker: str
    kinds: tuple[str, ...]
    title: str
    caption: str
    model: str | None = None
    options: Mapping[str, str] = {}
    without: tuple[str, ...] = ()
    needs_reference: bool = False
    needs_loss: str | None = None
    needs_horizons: bool = False
    study: str = ""
