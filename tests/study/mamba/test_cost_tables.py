"""Tables of seconds: of a step, of tuning, and of a run by rule; of the mode and of the reference."""

import math

import pytest
from artifact_records import BLOCKS, N_DATA, PROVENANCE, cells_by, make, make_records, tuning_record

from sgtune.study.mamba.reference import INFINITE, OF_POSITION, OF_REFERENCE, doubted
from sgtune.study.report.table import DASH


def costs(**changes):
    rows = [
        {"sampler": "sgld", "batch_size": 8_000, "n_leapfrog": None, "seconds_per_step": 0.002},
        {"sampler": "sghmc", "batch_size": 80_000, "n_leapfrog": 5, "seconds_per_step": 0.03},
        {"sampler": "sghmc", "batch_size": 8_000, "n_leapfrog": 10, "seconds_per_step": 0.006},
    ]
    record = {"model": "logistic", "n_data": 800_000, "rows": rows, "provenance": PROVENANCE}
    return make("cost", {"cost": [record | changes]})


def test_cost_of_a_step_from_the_largest_batch_down_and_beside_a_table_that_was_given():
    values = [(cell.metric, cell.sampler, cell.detail, cell.value) for cell in costs()]
    assert values == [
        ("step_ms", "sghmc", "n = 80,000, L = 5", pytest.approx(30)),
        ("step_ms", "sgld", "n = 8,000", pytest.approx(2)),
        ("step_ms", "sghmc", "n = 8,000, L = 10", pytest.approx(6)),
    ]
    # The second shape is not in this run.
    given = [
        {"sampler": "sghmc", "batch_size": 8_000, "n_leapfrog": n, "seconds_per_step": seconds}
        for n, seconds in ((10, 0.004), (5, 1.0))
    ]
    cells = [cell for cell in costs(table=given) if cell.metric != "step_ms"]
    assert {(cell.sampler, cell.detail) for cell in cells} == {("sghmc", "n = 8,000, L = 10")}
    assert {cell.metric: cell.value for cell in cells} == pytest.approx(
        {"table_step_ms": 4, "step_ratio": 1.5}
    )


def test_timings_by_hand():
    def account(rule, *numbers):
        names = ("process_seconds", "startup_seconds", "compile_seconds", "peak_memory_gb")
        return PROVENANCE | {"rule": rule} | dict(zip(names, numbers, strict=True))

    numbers = [(10.0, 1.0, 2.0, 0.5), (60.0, 2.0, 3.0, 2.5), (20.0, 3.0, 4.0, 1.0)]
    tunings = [{"provenance": account("tune_sampler", *own)} for own in numbers]
    chains = [account("sample_nuts", 100.0, 0.0, 10.0, 3.0), account("sample_nuts", 310.0, 1.0, 10.0, 1.0)]
    # Of a version that did not say its rule.
    nuts = {"chains": chains, "provenance": PROVENANCE}
    cells = cells_by(make("timings", {"tuning": tunings, "reference": [nuts]}), "detail", "metric")
    assert {detail for detail, _ in cells} == {"tune_sampler", "sample_nuts", "all of these"}
    metrics = ("jobs", "total_seconds", "median_seconds", "longest_seconds")
    metrics += ("startup_percent", "compilation_percent", "peak_memory_gb")
    for rule, expected in {
        "tune_sampler": (3, 90, 20, 60, 100 * 6 / 90, 10, 2.5),
        "sample_nuts": (2, 410, 205, 310, 100 / 410, 2000 / 410, 3),
        "all of these": (5, 500, 60, 310, 1.4, 5.8, 3),
    }.items():
        assert [cells[rule, metric].value for metric in metrics] == pytest.approx(expected)


SECONDS = {
    **{"total": 30.0, "warm": 24.0, "cold": 37.0, "startup": 2.0, "compilation": 6.0},
    **{"shared_compilation": 5.0, "sampling": 15.0, "gradients": 8.0, "discrepancy": 0.5},
    **{"nominal": 12.0, "overrun": 3.0},
}


@pytest.fixture(scope="module")
def tuned_by_hand():
    """Two tuning runs of SGLD per tuner, with means `SECONDS` where seconds are given."""
    record = tuning_record("logistic", "sgld", 2)
    tuned = {(one["tuner"], one["replicate"]): one for one in record["tuners"]}
    changes = {
        "mamba-ksd": {},
        "mamba-fssd": {"warm": 12.0, "nominal": 18.0},
        # Its budget is in steps.
        "grid": {"warm": 48.0, "nominal": None, "overrun": None},
    }
    for tuner, change in changes.items():
        seconds = SECONDS | change
        for replicate, factor in enumerate((0.5, 1.5)):
            own = {name: value and value * factor for name, value in seconds.items()}
            # Only the first run compiles, so the cold time is from the first run.
            first = {name: seconds[name] for name in ("cold", "startup", "compilation", "shared_compilation")}
            own |= first if replicate == 0 else dict.fromkeys(first, 1e6)
            tuned[tuner, replicate].update(seconds=own, gradient_evaluations=2_500_000_000 * factor)
    return {"tuning": [record | one for one in record["tuners"]]}


def values_of(cells, tuner):
    return {metric: cell.value for (name, metric), cell in cells.items() if name == tuner}


def test_tuning_time_by_hand(tuned_by_hand):
    cells = cells_by(make("tuning_time", tuned_by_hand), "tuner", "metric")
    expected = {"nominal_seconds": 12, "warm_seconds": 24, "warm_per_budget": 2, "cold_seconds": 37}
    expected |= {"cold_per_budget": 37 / 12, "warm_ratio": 1, "nominal_ratio": 1}
    assert values_of(cells, "mamba-ksd") == pytest.approx(expected)
    warm = cells["mamba-ksd", "warm_seconds"]
    assert (warm.sd, warm.se) == pytest.approx((24 / 2**0.5, 12))  # of 12 and 36
    ratios = [cells["mamba-fssd", name].value for name in ("warm_ratio", "nominal_ratio")]
    assert ratios == pytest.approx([0.5, 1.5])
    in_budgets = ("nominal_seconds", "warm_per_budget", "cold_per_budget", "nominal_ratio")
    of_grid = {"warm_seconds": 48.0, "cold_seconds": 37.0, "warm_ratio": 2.0} | dict.fromkeys(in_budgets)
    assert values_of(cells, "grid") == of_grid
    # The heuristic runs once, compares nothing, and has no budget to exceed.
    assert cells["heuristic", "nominal_seconds"].value == 0
    assert cells["heuristic", "warm_per_budget"].value is cells["heuristic", "warm_seconds"].sd is None


def test_tuning_parts_by_hand(tuned_by_hand):
    cells = cells_by(make("tuning_parts", tuned_by_hand), "tuner", "metric")
    expected = {"sampling_seconds": 15, "score_seconds": 8, "discrepancy_seconds": 0.5, "other_seconds": 0.5}
    expected |= {"compile_seconds": 11, "startup_seconds": 2, "overrun_percent": 25}
    assert values_of(cells, "mamba-ksd") == pytest.approx(expected | {"gradient_evaluations_x1e-9": 2.5})
    assert cells["grid", "overrun_percent"].value is None
    assert cells["heuristic", "overrun_percent"].value is None


@pytest.fixture
def records():
    return make_records(1)


def of_model(records, model, key):
    return next(one for one in records["reference"] if key in one and one["model"] == model)


def test_how_the_reference_was_sampled_and_whether_it_is_trusted(records):
    of_model(records, "pmf", "trusted")["trusted"] = False
    found = make("reference", records)
    cells = cells_by(found, "model", "detail", "metric")
    details = {model: dict.fromkeys(cell.detail for cell in found if cell.model == model) for model in N_DATA}
    assert list(details["pmf"]) == [*BLOCKS, "functionals"]
    assert list(details["logistic"]) == ["all", "functionals"]
    # The root mean square of 0.3 and 0.4, for the functionals, or for the position of a model without functionals. The
    # errors are those that exact draws would have.
    for where, value in {
        ("pmf", "users", "block_sd"): 0.25,
        ("pmf", "users", "block_r_hat_p99"): 1.04,
        ("pmf", "functionals", "block_sd"): math.sqrt(0.125),
        ("pmf", "functionals", "block_n"): 2,
        ("pmf", "functionals", "functional_error"): 0.015,
        ("pmf", "functionals", "divergences"): 3,
        ("logistic", "functionals", "block_sd"): 0.25,
        ("logistic", "functionals", "xi_white_x100"): 1.4,
    }.items():
        assert cells[where].value == pytest.approx(value)
    assert ("pmf", "functionals", "xi_white_x100") not in cells
    trusted = [cells[model, "functionals", "block_trusted"].shown for model in ("logistic", "pmf")]
    assert trusted == ["yes", "no"]


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


def test_errors_are_in_doubt_where_what_they_compare_with_is_badly_sampled(records):
    assert doubted(records) == set()
    pmf = of_model(records, "pmf", "trusted")
    pmf["blocks"]["users"] = pmf["blocks"]["users"] | {"r_hat_p99": 1.06}
    assert doubted(records) == {("pmf", metric) for metric in OF_POSITION}
    pmf["trusted"] = False
    assert doubted(records) == {("pmf", metric) for metric in OF_REFERENCE}
    assert doubted({"evaluation": []}) == set()


def test_modes_say_what_was_reached(records):
    far = of_model(records, "pmf", "converged")
    far |= {"converged": False, "distance": None}
    cells = cells_by(make("modes", records), "model", "metric")
    assert cells["pmf", "rmse"].value == 0.987
    assert ("pmf", "log_loss") not in cells
    assert cells["bnn", "accuracy_percent"].value == pytest.approx(95)
    assert cells["logistic", "gradient_norm"].value == 78.9
    assert cells["logistic", "root_dimension"].value == 10
    assert (cells["pmf", "converged"].shown, cells["logistic", "converged"].shown) == ("no", "yes")
    assert cells["pmf", "distance"].shown == DASH
