"""The tables of the mode and of the reference, and which errors they put in doubt."""

import math

import pytest
from artifact_records import BLOCKS, cells_by, make, make_records

from sgtune.study.mamba.reference import INFINITE, OF_POSITION, OF_REFERENCE, doubted
from sgtune.study.report.table import DASH
from sgtune.support.errors import DataError


@pytest.fixture
def records():
    return make_records(1)


def of_model(records, model, key):
    return next(one for one in records["reference"] if key in one and one["model"] == model)


def test_how_the_reference_was_sampled_and_whether_it_is_trusted(records):
    of_model(records, "pmf", "trusted")["trusted"] = False
    found = make("reference", records)
    cells = cells_by(found, "model", "detail", "metric")
    assert list(dict.fromkeys(cell.detail for cell in found if cell.model == "pmf")) == [
        *BLOCKS,
        "functionals",
    ]
    assert {cell.detail for cell in found if cell.model == "logistic"} == {"all", "functionals"}
    assert cells["pmf", "users", "block_sd"].value == 0.25
    assert cells["pmf", "users", "block_r_hat_p99"].value == 1.04
    # The root mean square of 0.3 and 0.4, for the functionals, or for the position of a model without functionals.
    assert cells["pmf", "functionals", "block_sd"].value == pytest.approx(math.sqrt(0.125))
    assert cells["pmf", "functionals", "block_n"].value == 2
    assert cells["logistic", "functionals", "block_sd"].value == pytest.approx(0.25)
    trusted = {key[:2]: cell.shown for key, cell in cells.items() if key[2] == "block_trusted"}
    assert (trusted["logistic", "functionals"], trusted["pmf", "functionals"]) == ("yes", "no")
    # The errors that exact draws would have.
    assert cells["logistic", "functionals", "xi_white_x100"].value == pytest.approx(1.4)
    assert cells["pmf", "functionals", "functional_error"].value == pytest.approx(0.015)
    assert ("pmf", "functionals", "xi_white_x100") not in cells
    assert cells["pmf", "functionals", "divergences"].value == 3


def test_blocks_without_diagnostics_or_that_never_moved_are_not_trusted(records):
    pmf = of_model(records, "pmf", "trusted")
    unknown = dict.fromkeys(("sd_error", "r_hat_max", "r_hat_p99", "r_hat_median", "ess_min", "ess_median"))
    stuck = {"r_hat_max": None, "r_hat_p99": None, "ess_min": 0.0}
    pmf["blocks"] = {
        name: held | (unknown if name == "users" else stuck) for name, held in pmf["blocks"].items()
    }
    cells = cells_by(make("reference", records), "model", "detail", "metric")
    shown = [cells["pmf", block, "block_r_hat_max"].shown for block in ("users", "items")]
    assert shown == [DASH, INFINITE]
    assert {cells["pmf", block, "block_trusted"].shown for block in ("users", "items")} == {"no"}
    del pmf["functionals"]
    with pytest.raises(DataError, match="the draws of pmf are of another version of sgtune"):
        make("reference", records)


def test_errors_are_in_doubt_where_what_they_compare_with_is_badly_sampled(records):
    assert doubted(records) == set()
    pmf = of_model(records, "pmf", "trusted")
    pmf["blocks"]["users"] = pmf["blocks"]["users"] | {"r_hat_p99": 1.06}
    assert doubted(records) == {("pmf", metric) for metric in OF_POSITION}
    pmf["trusted"] = False
    assert doubted(records) == {("pmf", metric) for metric in OF_REFERENCE}
    assert doubted({"evaluation": []}) == set()


def test_modes_say_what_was_reached(records):
    cells = cells_by(make("modes", records), "model", "metric")
    assert cells["pmf", "rmse"].value == 0.987
    assert ("pmf", "log_loss") not in cells
    assert cells["bnn", "accuracy_percent"].value == pytest.approx(95)
    assert cells["logistic", "gradient_norm"].value == 78.9
    assert cells["logistic", "root_dimension"].value == 10
    far = of_model(records, "pmf", "converged")
    far |= {"converged": False, "distance": None}
    cells = cells_by(make("modes", records), "model", "metric")
    assert (cells["pmf", "converged"].shown, cells["logistic", "converged"].shown) == ("no", "yes")
    assert cells["pmf", "distance"].shown == DASH
    del far["converged"]
    with pytest.raises(DataError, match="the MAP of pmf is of another version of sgtune"):
        make("modes", records)
