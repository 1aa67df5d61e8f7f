"""The KSD of exact draws in tables: where the posterior is not Gaussian, the curvature at the mode does not tell it."""

import numpy as np
import pytest
from artifact_records import cells_by, make_files, records_of
from sgtune.study.mamba.exact_draws import with_floors

from sgtune.stein import ksd, ksd_floor
from sgtune.study.report import TABLES

D, NARROW, WIDE, M, N = 400, 0.2, 1.0, 60, 25


def scores_of(draws):
    """Of a product of mixtures of N(0, NARROW²) and N(0, WIDE²) with equal weights: -x times the mean precision."""
    logs = [-0.5 * (draws / sd) ** 2 - np.log(sd) for sd in (NARROW, WIDE)]
    weight = 1 / (1 + np.exp(logs[1] - logs[0]))
    return -draws * (weight / NARROW**2 + (1 - weight) / WIDE**2)


def exact(rng, n):
    return rng.standard_normal((n, D)) * rng.choice([NARROW, WIDE], (n, D))


@pytest.fixture(scope="module")
def records():
    """Of a run on this target: the Laplace sd is that of the curvature at 0."""
    rng, laplace = np.random.default_rng(0), curvature_at_mode() ** -0.5
    draws = exact(rng, M)
    files = make_files(1, ("pmf",))
    files["reference"]["pmf/nuts"]["sd"] = [1.0] * D
    for row in files["widths"]["pmf"]["rows"]:
        scale = "identity" if row["scale"] == "identity" else np.full(D, laplace)
        row["n_points"] = M
        if row["width"] == 1 and row["discrepancy"] == "ksd":
            row["value"] = float(ksd(draws, scores_of(draws), scale))
    floors = {
        "ksd_floor": ksd_floor(D * curvature_at_mode(), D, N),
        "ksd_scaled_floor": ksd_floor(D, D, N),
    }
    for record in files["evaluation"].values():
        for run in record["runs"]:
            run["table"] |= floors
    return records_of(files)


def curvature_at_mode():
    step = 1e-4
    return float(-scores_of(np.array([[step]]))[0, 0] / step)


@pytest.mark.parametrize("key", ["ksd", "ksd_scaled"])
def test_the_floor_is_the_mean_of_exact_draws_and_not_what_the_mode_says(records, key):
    scale = "identity" if key == "ksd" else np.full(D, curvature_at_mode() ** -0.5)
    rng = np.random.default_rng(1)
    squares = []
    for _ in range(100):
        draws = exact(rng, N)
        squares.append(ksd(draws, scores_of(draws), scale) ** 2)
    error = np.std(squares, ddof=1) / 10
    row = with_floors(records, "table8")[0]["table"][0]
    written = next(one for one in records["evaluation"])["table"][0][f"{key}_floor"]
    # Of the M draws of NUTS the mean square has the relative noise of one of these values.
    noise = 4 * np.hypot(error, np.std(squares, ddof=1))
    assert abs(row[f"{key}_floor"] ** 2 - np.mean(squares)) < noise
    assert abs(written**2 - np.mean(squares)) > 3 * noise


def test_tables_show_it_and_nothing_without_draws_of_nuts_where_parameters_are_many(records):
    cells = cells_by(TABLES["table8"](records), "sampler", "tuner", "metric")
    row = with_floors(records, "table8")[0]["table"][0]
    assert cells["sgld", "mamba-ksd", "ksd_floor"].value == pytest.approx(row["ksd_floor"])
    assert cells["sgld", "mamba-ksd", "ksd"].floor == pytest.approx(row["ksd_floor"])
    without = {kind: held if kind != "widths" else [] for kind, held in records.items()}
    assert with_floors(without, "table8")[0]["table"][0]["ksd_floor"] is None
    few = records_of(make_files(1, ("logistic",)))
    assert with_floors(few, "table6") == few["evaluation"]
