"""A table or a figure, and a study that has tables and figures. Imports nothing heavy."""

from collections.abc import Mapping
from typing import NamedTuple


class Artifact(NamedTuple):
    """The entry of a table or figure. What it shows is said in ``workflow/captions/{name}.md``.

    Attributes:
        kinds: the kinds of the files that it is made from.
        title: its title.
        rows: of a table: the fields of a cell that its rows differ in, from the outside inwards; the model comes first
            by itself where there are several. From three fields on, the outer ones are headings above a table each. The
            field "origin" puts the tuners that are not in the paper below the paper's.
        columns: the field that its columns differ in, by default the metric, or two, the first above the second.
        stub: the headings of ``rows``, where these are not the names of the fields.
        parts: names for the parts of ``detail`` between commas, in their order: ``("h", "A")`` of "h = 0.1, A = 1".
            They are fields, too, for ``rows``, ``columns`` and ``stub``.
        is_prose: whether its cells are words, which break into lines.
        model: the one model that it shows; None: all.
        maker: ``module:function`` in the package of its study, imported when it is called;
            ``function(records, **options)`` returns a list of `Cell`, or a Matplotlib figure. By default it is the
            function of the artifact's own name in ``tables`` or ``figures``.
        options: for the maker.
        without: tuners that it leaves out.
        needs: it shows only models that have all of these in the run: a "reference", several "horizons", arms that run
            again for "regret", a loss by which arms are judged, an "audit", runs that are "preconditioned"; or their
            own name. "paper" if it is made only where one of the paper's is.
    """

    kinds: tuple[str, ...]
    title: str
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ("metric",)
    stub: Mapping[str, str] = {}
    parts: tuple[str, ...] = ()
    is_prose: bool = False
    model: str | None = None
    maker: str = ""
    options: Mapping[str, object] = {}
    without: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


class Study(NamedTuple):
    """The entry of a study of one paper: ``STUDY`` in ``artifacts`` of its package.

    Its rule, its folders ``results/{run}/{name}`` and ``results/published/{name}``, and, unless it says otherwise, its
    package ``sgtune.study.{name}`` have its name.

    Attributes:
        label: its name in titles, and the category of its artifacts in a report.
        tables: by name, in the order of print; names are unique over all studies.
        figures: likewise.
        names: printed names of models, samplers and other fields of its cells, in the order of print, where the
            catalogue and `labels` do not have them.
        package: of its makers, where it is not the study's name.
        n_commits: of how many commits its results may be: several where its jobs add to a finished main study.
    """

    label: str
    tables: Mapping[str, Artifact]
    figures: Mapping[str, Artifact]
    names: Mapping[str, str] = {}
    package: str = ""
    n_commits: int = 1

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of its result files: the kind is the name of the file, or of a folder above it."""
        return tuple(
            dict.fromkeys(kind for one in (self.tables | self.figures).values() for kind in one.kinds)
        )
