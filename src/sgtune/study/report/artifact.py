"""A table or a figure of the study."""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Artifact"]


class Artifact(NamedTuple):
    """The entry of a table or figure.

    Attributes:
        maker: ``module:function`` in `sgtune.study.report`, or for a further study in its own package, imported
            when it is called; ``function(records, **options)`` returns a `Table` or a Matplotlib figure.
        kinds: the kinds of the files that it is made from.
        title: its title.
        caption: its caption in a report, as reStructuredText.
        model: the one model that it shows; None: all.
        options: for the maker.
        without: tuners that it leaves out.
        needs_reference: whether it shows only models with a reference.
        needs_loss: it shows only models whose arms are judged by this loss; None: all.
        needs_horizons: whether it shows only models tuned for several horizons.
        needs_regret: whether it shows only models whose arms run again for regret.
        study: the further study (`sgtune.study.report.studies`) that it belongs to; empty: the main one.
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
    needs_regret: bool = False
    study: str = ""
