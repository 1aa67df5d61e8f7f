"""Further studies: those of other papers, in the same pipeline beside the main one, each with a rule of its name."""

from collections.abc import Mapping
from typing import NamedTuple

from sgtune.study.catalogue import adam_mcmc, ccadl
from sgtune.study.catalogue.artifact import Artifact

__all__ = ["STUDIES", "FurtherStudy"]


class FurtherStudy(NamedTuple):
    """What the workflow knows of a further study.

    Its name is that of its rule, of its section in the configuration, of its folders ``results/{run}/{name}`` and
    ``results/published/{name}``, and of its package ``sgtune.study.{name}``. That package has the makers of its tables
    and figures, and a module ``settings``, which imports nothing heavy, with ``check(section)``: an `InputError` for
    what the schema cannot say of the section.

    Attributes:
        label: its name in print, and in a report the category of its artifacts.
        kinds: of its result files: each has the kind as its own name or as that of a folder in the study's folder.
        tables: by name, which no other study has.
        figures: likewise.
        shown: the tables and figures that README shows once they are published, in this order.
    """

    label: str
    kinds: tuple[str, ...]
    tables: Mapping[str, Artifact]
    figures: Mapping[str, Artifact]
    shown: tuple[str, ...]


STUDIES: dict[str, FurtherStudy] = {
    "ccadl": FurtherStudy(ccadl.LABEL, ccadl.KINDS, ccadl.TABLES, ccadl.FIGURES, ccadl.SHOWN),
    "adam_mcmc": FurtherStudy(
        adam_mcmc.LABEL, adam_mcmc.KINDS, adam_mcmc.TABLES, adam_mcmc.FIGURES, adam_mcmc.SHOWN
    ),
}
"""By name, in the order of print."""
