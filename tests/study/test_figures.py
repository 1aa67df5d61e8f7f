"""Figures of the study, from small records."""

import json
import math
import xml.etree.ElementTree as ElementTree

import pytest
from artifact_records import (
    PROVENANCE,
    SAMPLERS,
    choose,
    make_files,
    make_records,
    record_of,
    records_of,
    write_files,
)
from figure_parts import labels_of, line_of, regret_at, texts
from sgtune.study.mamba.catalogue_figures import FIGURES as CATALOGUED

from sgtune.study.report import FIGURES, make_figure


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Every figure of a run, and the files it was made from."""
    folder = tmp_path_factory.mktemp("run")
    paths = write_files(make_files(3), folder)
    for name in FIGURES:
        make_figure(name, paths, svg=folder / f"{name}.svg", pdf=folder / f"{name}.pdf")
    return folder, paths


LABELS = {
    "figure1": {"PMF", "KSD", "FSSD", "KSD scaled", "full-batch, all samples", "stochastic, thinned samples"},
    "figure2": {"Neural network", "FSSD", "full-batch, thinned samples", "stochastic, all samples"},
    "figure3": {"SGLD", "SGHMC-CV", "run time (s)", "KSD", "MAMBA-KSD scaled", "Heuristic: not finite"},
    "figure3_scaled": {"SGNHT", "SGNHT-CV", "run time (s)", "KSD scaled", "Grid-KSD"},
    "figure4": {"SGLD", "SGHMC-CV", "run time (s)", "KSD", "MAMBA-KSD scaled", "Heuristic: not finite"},
    "figure4_scaled": {"SGNHT", "SGNHT-CV", "run time (s)", "KSD scaled", "Grid †"},
    "figure5_log_loss": {
        "SGNHT",
        "run time (s)",
        "Log-loss",
        "Grid, smaller grid †",
        "Heuristic: not finite",
    },
    "figure5": {"SGNHT", "run time (s)", "ECE (%)", "MAMBA-KSD, smaller grid", "Heuristic: not finite"},
    "widths": {"PMF", "exact draws", "coordinates scaled by the posterior", "lowest value"},
    "sensitivity": {
        "All widths",
        "Mixture weights",
        "PSD",
        "exact draws",
        "not distinguished from exact draws",
    },
    "sensitivity_values": {"Common mode", "FSSD", "preferred to exact draws"},
    "regret_dots": {"SGLD", "SGNHT-CV", "diverged", "MAMBA-FSSD", "Grid †", "Log-loss, over the oracle's"}
    | {"Oracle", "Random arm", "Frozen chain", "mean ± 2 s.e.; 2 tuning runs, 4 fresh replicates"},
    "gaussian_ladder_dots": {"Along the axes", "Rotated", "dimension D", "MAMBA-KSD", "1.25 times"}
    | {"Worst race", "Worst race, escaped", "mean ± 2 s.e.; SGLD; 2 races of R = 0.1 s by a given clock"},
    "ood_entropy": {
        "Density on the test set (1/nat)",
        "Density on Fashion-MNIST (1/nat)",
        "AUROC",
        "Heuristic: not finite",
    },
}


DRAWN_AGAIN = {entry.maker: name for name, entry in CATALOGUED.items()}.values()
"""A figure of each maker."""


@pytest.mark.parametrize("name", FIGURES)
def test_figures_have_their_labels_and_provenance_and_repeat(made, name, tmp_path):
    folder, paths = made
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.parse(folder / f"{name}.svg", parser).getroot()
    comments = {node.text.strip() for node in root.iter(ElementTree.Comment)}
    assert comments >= LABELS[name]
    description = root.find(".//{http://purl.org/dc/elements/1.1/}description").text
    assert json.loads(description)["commit"] == [PROVENANCE["commit"]]
    assert (folder / f"{name}.pdf").read_bytes()[:5] == b"%PDF-"
    if name in DRAWN_AGAIN:
        make_figure(name, reversed(paths), svg=tmp_path / "again.svg", pdf=tmp_path / "again.pdf")
        for kind in ("svg", "pdf"):
            assert (tmp_path / f"again.{kind}").read_bytes() == (folder / f"{name}.{kind}").read_bytes()


def test_discrepancies_have_a_column_per_model_and_a_row_per_discrepancy():
    three, one = make_records(1), make_records(1, ("pmf",))
    for name in ("figure1", "figure2"):
        axes = FIGURES[name](three).axes
        assert [axis.get_title() for axis in axes[:3]] == ["Logistic regression", "PMF", "Neural network"]
        assert [axis.get_ylabel() for axis in axes[::3]] == ["KSD", "FSSD", "KSD scaled"]
        assert [axis.get_title() for axis in FIGURES[name](one).axes] == ["KSD", "FSSD", "KSD scaled"]


def test_panels_without_a_finite_value_say_so():
    lost = make_records(1)
    for record in lost["evaluation"]:
        record["curves"] = [row | {"ksd": None, "ece": None} for row in record["curves"]]
    for row in lost["estimates"][0]["rows"]:
        row.update(ksd=None, fssd=None, ksd_scaled=None)
    for name, n_empty in {"figure1": 3, "figure2": 3, "figure3": 6, "figure4": 6, "figure5": 6}.items():
        figure = FIGURES[name](lost)
        assert texts(figure).count("no finite value") == n_empty
        figure.canvas.draw()
    assert "no finite value" not in texts(FIGURES["figure4_scaled"](lost))
    lost["estimates"][0]["rows"] = []
    assert texts(FIGURES["figure1"](lost)).count("no finite value") == 3


def test_a_metric_without_values_in_some_curves_is_named_in_its_panel():
    records = make_records(1, ("bnn",))
    for record in records["evaluation"]:
        if record["tuner"] == "grid":
            record["curves"] = [
                {key: value for key, value in row.items() if key != "ece"} for row in record["curves"]
            ]
    notes = texts(FIGURES["figure5"](records))
    assert sum("Grid: not finite" in note for note in notes) == len(SAMPLERS)


def test_ece_curves_are_in_percent():
    records = make_records(1, ("bnn",))
    record = record_of(records, "bnn", "sgld", "grid")
    grid = line_of(FIGURES["figure5"](records).axes[0], "Grid")
    assert grid.get_ydata()[0] == pytest.approx(100 * record["curves"][0]["ece"])


CURVES = ("figure3", "figure3_scaled", "figure4", "figure4_scaled", "figure5", "figure5_log_loss")


def drawn(axis):
    """The contents of a panel: its texts, the points of its lines and dots by label, and its bands."""
    lines = [(line.get_label(), str(line.get_xydata().tolist())) for line in axis.lines]  # nan is nan
    bands = [path.vertices.tolist() for band in axis.collections for path in band.get_paths()]
    return [text.get_text() for text in axis.texts], lines, bands, len(axis.patches)


@pytest.mark.parametrize("name", FIGURES)
def test_a_tuner_without_an_arm_leaves_a_note_in_its_panel_and_the_others_as_they_are(name):
    files = make_files(1)
    before = FIGURES[name](records_of(files)).axes
    for model in ("logistic", "pmf", "bnn"):
        choose(files, model, "sgld", "grid")
    figure = FIGURES[name](records_of(files))
    figure.canvas.draw()
    changed = [i for i, axis in enumerate(figure.axes) if drawn(axis) != drawn(before[i])]
    if name in CURVES:
        assert changed == [0]
        assert "Grid: no arm" in texts(figure)
        assert "Grid" not in labels_of(figure.axes[0])
    elif name == "ood_entropy":
        assert changed == [0, 1, 2]
        assert [text.get_text() for axis in figure.axes[:2] for text in axis.texts] == ["Grid: no arm"] * 2
        assert "Grid" not in labels_of(figure.axes[2])
        assert "Grid" in labels_of(before[2])
    elif name == "regret_dots":
        assert changed == [0, 1, 2]
        assert texts(figure) == ["diverged / no arm"] * 3
        for axis, earlier in zip(figure.axes, before, strict=True):
            # In the strip of the heuristic, which diverged with SGHMC.
            assert regret_at(axis, "Grid", "sgld") == regret_at(axis, "Heuristic", "sghmc")
            assert regret_at(earlier, "Grid", "sgld") < regret_at(earlier, "Heuristic", "sghmc")
    else:
        assert changed == []


def test_a_panel_of_tuners_without_an_arm_says_so():
    files = make_files(1, ("pmf",))
    for tuned in files["tuning"]["pmf/sgld"]["tuners"]:
        choose(files, "pmf", "sgld", tuned["tuner"])
    figure = FIGURES["figure4"](records_of(files))
    assert [text.get_text() for text in figure.axes[0].texts] == ["no arm"]
    assert "no arm" not in [text.get_text() for axis in figure.axes[1:] for text in axis.texts]


def test_estimates_that_are_not_finite_are_left_out_and_the_others_are_where_they_were_measured():
    records = make_records(1, ("pmf",))
    [record] = records["estimates"]
    for name, varied in (("figure1", "step_size"), ("figure2", "batch_size")):
        rows = [row for row in record["rows"] if row["figure"] == varied]
        rows = [row for row in rows if (row["gradients"], row["points"]) == ("stochastic", "thinned")]
        rows[1]["fssd"] = None
        left = sorted((row[varied], row["fssd"]) for row in rows if row["fssd"] is not None)
        line = line_of(FIGURES[name](records).axes[1], "stochastic, thinned samples")
        x = [math.log10(h) if varied == "step_size" else 100 * h / record["n_data"] for h, _ in left]
        assert len(left) == (2 if varied == "step_size" else 3)  # the largest step size has no value either
        assert line.get_xydata().tolist() == [[a, b] for a, (_, b) in zip(x, left, strict=True)]
