"""Figures of the study, from small records."""

import json
import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from artifact_records import PROVENANCE, make_records, write_records

from sgtune.artifacts import FIGURES, make_figure
from sgtune.artifacts.figures import curve
from sgtune.errors import DataError


@pytest.fixture(scope="module", params=[1, 3], ids=["one replicate", "three replicates"])
def made(request, tmp_path_factory):
    """Every figure of a run, and the files it was made from."""
    folder = tmp_path_factory.mktemp("run")
    paths = write_records(make_records(request.param), folder)
    for name in FIGURES:
        make_figure(name, paths, svg=folder / f"{name}.svg", pdf=folder / f"{name}.pdf")
    return folder, paths


LABELS = {
    "figure1": {"KSD", "FSSD", "KSD scaled", "full-batch, all samples", "stochastic, thinned samples"},
    "figure2": {"KSD", "FSSD", "KSD scaled", "full-batch, thinned samples", "stochastic, all samples"},
    "figure3": {"SGLD", "SGHMC-CV", "run time (s)", "KSD", "MAMBA-KSD scaled", "Heuristic: not finite"},
    "figure3_scaled": {"SGNHT", "SGNHT-CV", "run time (s)", "KSD scaled", "Grid-KSD"},
    "widths": {"KSD", "FSSD", "exact draws", "coordinates scaled by the posterior", "lowest value"},
    "regret_dots": {"SGLD", "SGNHT-CV", "diverged", "MAMBA-FSSD", "Heuristic"},
}


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
    make_figure(name, reversed(paths), svg=tmp_path / "again.svg", pdf=tmp_path / "again.pdf")
    for kind in ("svg", "pdf"):
        assert (tmp_path / f"again.{kind}").read_bytes() == (folder / f"{name}.{kind}").read_bytes()


def test_figures_of_several_models_and_of_nothing_finite():
    records = make_records(1, models=("logistic", "pmf"))
    assert len(FIGURES["figure1"](records).axes) == 6
    with pytest.raises(DataError, match="logistic, pmf; it shows one model"):
        FIGURES["figure3"](records)
    lost = make_records(1)
    for record in lost["evaluation"]:
        record["curves"] = [row | {"ksd": None} for row in record["curves"]]
    for row in lost["estimates"][0]["rows"]:
        row.update(ksd=None, fssd=None, ksd_scaled=None)
    for name in ("figure1", "figure2", "figure3"):
        FIGURES[name](lost).canvas.draw()


def test_curves_are_means_over_the_replicates_that_are_finite():
    rows = [
        {"replicate": i, "seconds": k + 0.1 * i, "ksd": value}
        for i, values in enumerate([(4.0, 2.0), (8.0, None)])
        for k, value in enumerate(values)
    ]
    seconds, mean, sd, finite, runs = curve(rows, "ksd")
    assert np.allclose(seconds, [0.05, 1.05])
    assert np.allclose(mean, [6, 2])
    assert sd[0] == pytest.approx(math.sqrt(8))
    assert math.isnan(sd[1])
    assert finite.tolist() == [2, 1]
    assert runs.tolist() == [2, 2]
