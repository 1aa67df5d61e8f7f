"""The table of the reference's convergence."""

# ruff: noqa: RUF001 - tables print Greek letters

import pytest
from artifact_records import BLOCKS, make_records

from sgtune.study.report import TABLES
from sgtune.support.errors import DataError


def test_the_reference_says_how_it_was_sampled_and_whether_it_is_trusted():
    records = make_records(1)
    pmf = next(record for record in records["reference"] if "trusted" in record and record["model"] == "pmf")
    pmf["trusted"] = False
    table = TABLES["reference"](records)
    headings = [column[-1] for column in table.columns]
    shown = {
        row.labels: dict(zip(headings, (cell.shown for cell in row.cells), strict=True)) for row in table.rows
    }
    judged = "What tuners are judged by"
    assert [row.labels for row in table.rows[:2]] == [
        ("Logistic regression", "all"),
        ("Logistic regression", judged),
    ]
    assert table.rows[-1].labels == ("PMF", judged)
    assert len(table.rows) == 1 + len(BLOCKS) + 2
    assert (
        shown["PMF", "U (users)"] | {"Trusted": "yes", "R-hat, 99%": "1.04", "Sd": "0.250"}
        == shown["PMF", "U (users)"]
    )
    # The root mean square of 0.3 and 0.4, for the functionals, or for the position of a model without functionals.
    assert (shown["PMF", judged]["Sd"], shown["PMF", judged]["Parameters"]) == ("0.354", "2")
    assert shown["Logistic regression", judged]["Sd"] == "0.250"
    assert shown["PMF", judged]["Error of sd"] == "0.0340"
    assert [shown[model, judged]["Trusted"] for model in ("Logistic regression", "PMF")] == ["yes", "no"]
    for words in (
        "at most 1.05 for 99%",
        "at least 200",
        "Logistic regression: trusted for what tuners are judged by; its own error "
        "0.012 in ξ(σ̂), 0.013 in ξ of relative errors, 0.014 in ",
        "PMF: NOT trusted for what tuners are judged by; its own error "
        "0.012 in ξ(σ̂), 0.013 in ξ of relative errors, 0.015 in the error of the "
        "functionals; 2 chains of 500 draws, 3 divergences",
        "25% of the trajectories cut",
    ):
        assert words in table.caption
    # Chains without draws have no diagnostics; a parameter that never moved has an infinite R-hat.
    unknown = dict.fromkeys(("sd_error", "r_hat_max", "r_hat_p99", "r_hat_median", "ess_min", "ess_median"))
    stuck = {"r_hat_max": None, "r_hat_p99": None, "ess_min": 0.0}
    pmf["blocks"] = {
        name: held | (unknown if name == "users" else stuck) for name, held in pmf["blocks"].items()
    }
    pmf["diagnostics"] = pmf["diagnostics"] | {"draws_lost": 321}
    table = TABLES["reference"](records)
    worst = {row.labels[1]: row.cells[headings.index("R-hat, worst")].shown for row in table.rows}
    assert (worst["U (users)"], worst["V (items)"]) == ("–", "∞")
    trusted = {row.labels[1]: row.cells[headings.index("Trusted")].shown for row in table.rows}
    assert (trusted["U (users)"], trusted["V (items)"]) == ("no", "no")
    assert "2 chains of 500 draws (321 of them lost)" in table.caption
    del pmf["functionals"]
    with pytest.raises(DataError, match="the draws of pmf are of another version of sgtune"):
        TABLES["reference"](records)
