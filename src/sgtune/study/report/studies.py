"""Further studies, of other papers: they run in the same pipeline as the main one, and each has a rule of its name."""

from collections.abc import Mapping
from typing import NamedTuple

from sgtune.study.adam_mcmc import artifacts as adam_mcmc
from sgtune.study.ccadl import artifacts as ccadl
from sgtune.study.report.artifact import Artifact

__all__ = ["STUDIES", "FurtherStudy"]


class FurtherStudy(NamedTuple):
    """The entry of a further study.

    Its rule, its section in the configuration, its folders ``results/{run}/{name}`` and ``results/published/{name}``,
    and its package ``sgtune.study.{name}`` all have its name. The package has the makers of its tables and figures, and
    a module ``settings``, which imports nothing heavy, with ``check(section)``: it raises an `InputError` for errors in
    the section that the schema cannot express.

    Attributes:
        label: its name in tables, and the category of its artifacts in a report.
        kinds: of its result files: the kind is the name of the file, or of a folder in the study's folder.
        tables: by name; no other study may have the name.
        figures: likewise.
    """

    label: str
    kinds: tuple[str, ...]
    tables: Mapping[str, Artifact]
    figures: Mapping[str, Artifact]


STUDIES: dict[str, FurtherStudy] = {
    "ccadl": FurtherStudy(ccadl.LABEL, ccadl.KINDS, ccadl.TABLES, ccadl.FIGURES),
    "adam_mcmc": FurtherStudy(adam_mcmc.LABEL, adam_mcmc.KINDS, adam_mcmc.TABLES, adam_mcmc.FIGURES),
}
"""By name, in the order of print."""
