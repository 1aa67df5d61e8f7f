"""The style of figures, and their files."""

import json
import xml.etree.ElementTree as ElementTree

import matplotlib
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from sgtune.study.catalogue import TUNERS
from sgtune.study.report.style import log_ticks, save_figure, theme, tuner_style

SOURCES = {"files": 3, "commit": ["0123456789"]}


@theme()
def drawn():
    figure = Figure(layout="constrained")
    axis = figure.subplots()
    axis.plot([1, 100], [1, 2], **tuner_style("grid"))
    axis.set(xscale="log", xlim=(1, 100))
    log_ticks(axis.xaxis)
    return figure


def test_every_tuner_has_a_style_of_its_own():
    looks = [tuner_style(name) for name in TUNERS]
    assert len({(look["color"], look["marker"], look["markerfacecolor"]) for look in looks}) == len(TUNERS)


def test_a_file_has_the_provenance_and_no_date_and_saving_leaves_the_callers_settings_alone(tmp_path):
    before, blue, figures = dict(matplotlib.rcParams), to_rgb("b"), pyplot.get_fignums()
    for name in ("a", "b"):
        files = {kind: tmp_path / f"{name}.{kind}" for kind in ("svg", "pdf")}
        save_figure(drawn(), title="T", sources=SOURCES, **files)
    assert (dict(matplotlib.rcParams), to_rgb("b"), pyplot.get_fignums()) == (before, blue, figures)
    description = ElementTree.parse(tmp_path / "a.svg").find(
        ".//{http://purl.org/dc/elements/1.1/}description"
    )
    assert json.loads(description.text) == SOURCES
    for kind in ("svg", "pdf"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
