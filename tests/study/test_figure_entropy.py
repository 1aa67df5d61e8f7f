"""The figure of entropies on inputs from another distribution, from small records."""

import numpy as np
import pytest
from artifact_records import OOD_MISSING, SAMPLERS, choose, make_files, make_records, record_of, records_of
from figure_parts import labels_of, texts

from sgtune.study.report import FIGURES
from sgtune.support.errors import DataError


def test_entropy_densities_are_means_over_the_replicates_and_auroc_a_dot_per_tuner():
    records = make_records(3)
    figure = FIGURES["ood_entropy"](records)
    assert len(figure.axes) == 3 * len(SAMPLERS)
    record = record_of(records, "bnn", "sgld", "mamba-ksd")
    accounts = [row["ood"] for row in record["table"]]
    drawn = figure.axes[1].patches[0].get_data()
    assert np.allclose(drawn.values, np.mean([account["histogram_ood"] for account in accounts], axis=0))
    assert np.allclose(drawn.edges, accounts[0]["edges"])
    aurocs = [account["auroc"] for account in accounts]
    dots = figure.axes[2].lines
    at = labels_of(figure.axes[2]).index("MAMBA-KSD")
    assert dots[at].get_xdata() == pytest.approx([np.mean(aurocs)])
    sd = np.std(aurocs, ddof=1)
    assert dots[at + 1].get_xdata() == pytest.approx([np.mean(aurocs) - sd, np.mean(aurocs) + sd])
    assert dots[at + 1].get_ydata().tolist() == 2 * dots[at].get_ydata().tolist()


def test_a_row_of_the_entropy_figure_without_an_arm_says_so_in_each_panel():
    files = make_files(1, ("bnn",))
    for tuned in files["tuning"]["bnn/sghmc"]["tuners"]:
        choose(files, "bnn", "sghmc", tuned["tuner"])
    figure = FIGURES["ood_entropy"](records_of(files))
    row = 3 * SAMPLERS.index("sghmc")
    assert [text.get_text() for axis in figure.axes[row : row + 3] for text in axis.texts] == ["no arm"] * 3
    assert texts(figure).count("no arm") == 3


def test_entropy_figure_says_why_there_is_nothing_and_refuses_different_bins():
    records = make_records(1, ("bnn",))
    for record in records["evaluation"]:
        record["table"] = [row | {"ood": OOD_MISSING} for row in record["table"]]
    words = " ".join(text.get_text() for text in FIGURES["ood_entropy"](records).texts)
    assert "Fashion-MNIST is missing (no source of it answered)" in words.replace("\n", " ")
    records = make_records(2, ("bnn",))
    record_of(records, "bnn", "sgld", "grid")["table"][1]["ood"]["edges"] = [0.0, 1.0]
    with pytest.raises(DataError, match="ood_entropy: replicates of sgld have histograms of different bins"):
        FIGURES["ood_entropy"](records)
