"""The style of figures (print width, type, colours that are distinct for colour-blind readers), and saving them."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogFormatterMathtext, LogLocator, MaxNLocator, NullFormatter

from sgtune.study.catalogue import TUNERS
from sgtune.study.report.labels import SAMPLERS, label
from sgtune.support.files import atomic_write

WIDTH = 7.0  # inches: the text width of a printed page
MEDIUM = 5.0  # two panels beside each other: letters of about 8 pixels on a telephone
NARROW = 4.0  # on a telephone the letters have their size
INK = "#262626"
GAP = 0.085  # of an axis: between the labels of lines
SMALL = "quick"
"""The run whose budgets are those of a test of the pipeline."""

RC = {
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#e3e3e3",
    "legend.frameon": False,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",  # a reader's browser need not have the font
    "svg.hashsalt": "sgtune",  # else the ids of an SVG differ from one drawing to the next
}
"""Settings that seaborn's theme for papers lacks."""


def tuner_style(tuner: str) -> dict:
    """Colour, marker, line style and label of a tuner, the same in every figure."""
    entry = TUNERS[tuner]
    color, marker, linestyle = entry.style
    # A tuner that runs another one on other step sizes has its colour and hollow markers.
    hollow = entry.method is not None
    return {
        "color": color,
        "marker": marker,
        "linestyle": linestyle,
        "label": entry.label,
        "markerfacecolor": "white" if hollow else color,
        "markeredgecolor": color if hollow else "white",
        "markeredgewidth": 1.0 if hollow else 0.4,
    }


def panels(
    n_rows: int, n_columns: int, width: float, height: float, **shared: object
) -> tuple[Figure, np.ndarray]:
    """A figure of so many inches, and its panels ``(n_rows, n_columns)``."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, **shared)


def legend_below(figure: Figure, handles: Iterable, columns: int = 2, **look: object) -> None:
    """One legend for all panels, outside them."""
    figure.legend(handles=list(handles), loc="outside lower center", ncols=columns, **look)


def sampler_rows(axis: Axes, samplers: Sequence[str]) -> None:
    """A row for each sampler, the first on top."""
    axis.set_yticks(range(len(samplers)), [label(sampler, SAMPLERS) for sampler in samplers])
    axis.set_ylim(len(samplers) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0)
    axis.grid(False, axis="y")


def log_ticks(axis: Axis, most: int = 6) -> None:
    """Ticks of a log axis whose limits stand: as plain numbers where these are short, else as powers of ten, and as
    many as the span asks for."""
    low, high = sorted(axis.get_view_interval())
    if low <= 0:  # an axis without data has the limits of a linear one
        return
    decades = math.log10(high / low)
    if decades < 0.5:
        axis.set_major_locator(MaxNLocator(5))
    else:
        # By itself the locator leaves out every other power of ten of a narrow panel.
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2 else (1,), numticks=most))
    axis.set_minor_formatter(NullFormatter())
    if low >= 9e-4 and high < 1.1e5:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    elif decades >= 2:
        axis.set_major_formatter(LogFormatterMathtext())


def log_error(value: float, error: float) -> tuple[float, float]:
    """Below and above ``value``, a bar of two standard errors of its logarithm: on a log axis it is never cut."""
    factor = math.exp(2 * error / abs(value))
    return value - value / factor, value * factor - value


def label_ends(axis: Axes, lines: Sequence[Line2D], *, place: int = -1) -> None:
    """The label of each line beside its last point (``place`` -1) or its first one (0), once the limits stand: lines
    that lie over each other can be told apart."""
    to_axes = axis.transData - axis.transAxes
    ends = []
    for line in lines:
        points = line.get_xydata()[np.isfinite(line.get_xydata()).all(axis=1)]
        if len(points):
            ends.append((*to_axes.transform(points[place]), line))
    ends.sort(key=lambda end: end[1])
    x, side = (-0.09, "right") if place == 0 else (1.04, "left")
    height = -math.inf
    for i, (at, y, line) in enumerate(ends):
        height = min(max(y, height + GAP, 0.0), 1 - GAP * (len(ends) - 1 - i))
        # Dotted: it is no part of the line, which may end before its axis does.
        leader = {"arrowstyle": "-", "color": line.get_color(), "linewidth": 0.8, "linestyle": (0, (1, 1.5))}
        leader |= {"shrinkA": 0, "shrinkB": 0, "relpos": (float(place == 0), 0.5)}
        look = {"xycoords": "axes fraction", "arrowprops": leader, "annotation_clip": False, "fontsize": 6.5}
        look |= {"ha": side, "va": "center", "color": INK}
        axis.annotate(line.get_label().replace(", smaller grid", ", smaller"), (at, y), (x, height), **look)


@contextmanager
def theme() -> Iterator[None]:
    """Seaborn's theme for papers and `RC`; the caller's settings are restored afterwards.

    The font comes with Matplotlib, so every machine draws the same letters. Seaborn would also redefine the letters of
    colours ("b", "g") permanently, because they are not a setting; this is avoided.
    """
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        sns.set_theme("paper", "ticks", font="DejaVu Sans", font_scale=0.9, color_codes=False, rc=RC)
        yield


PLACES = re.compile(r'(?<= )(?:d|x|y)="[^"]*"|translate\([^)]*\)')
"""Of an SVG: its paths and places, in points (those of glyphs in much smaller units)."""


def compact_svg(text: str) -> str:
    """An SVG with coordinates to a hundredth of a point, and without Matplotlib's indents."""

    def rounded(number: re.Match) -> str:
        return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")

    def shorter(match: re.Match) -> str:
        return re.sub(r"-?\d+\.\d+", rounded, re.sub(r"\s*([A-Zz])\s*", r"\1", " ".join(match[0].split())))

    return re.sub(r"\n\s+", "\n", PLACES.sub(shorter, text))


def save_figure(figure: Figure, *, title: str, svg: str | Path, pdf: str | Path, sources: dict) -> None:
    """The figure as SVG and PDF, with ``sources`` (`provenance.summarise`) as JSON in the Description of the one
    and the Subject of the other. Neither holds the date of drawing: the same records give the same bytes. Figures of
    the run `SMALL` say that its budgets are small."""
    account = json.dumps(sources, sort_keys=True)
    creator = f"sgtune, seaborn {sns.__version__}, Matplotlib {matplotlib.__version__}"
    own = {"svg": {"Description": account, "Date": None}}
    own["pdf"] = {"Subject": account, "CreationDate": None, "ModDate": None}
    with theme():
        if sources.get("run") == [SMALL]:
            figure.suptitle("small budgets", x=0.995, ha="right", fontsize=7, color=INK)
        for kind, target in {"svg": svg, "pdf": pdf}.items():
            metadata = {"Title": title, "Creator": creator} | own[kind]
            with atomic_write(target) as path:
                figure.savefig(path, format=kind, metadata=metadata)
                if kind == "svg":
                    path.write_text(compact_svg(path.read_text(encoding="utf-8")), encoding="utf-8")
            # The first file's layout holds for the other one. With "none" Matplotlib would still draw it twice.
            figure.set_layout_engine(None)
