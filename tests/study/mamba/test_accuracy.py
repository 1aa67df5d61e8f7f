"""The tables of accuracy: numbers, marks, the floor of exact draws, blocks of the parameters, entropies."""

import math

import numpy as np
import pytest
from artifact_records import BLOCKS, cells_by, make, make_files, make_records, record_of, records_of

from sgtune.study.mamba.accuracy import with_floors
from sgtune.study.report.labels import METRICS
from sgtune.study.report.means import SOURCES
from sgtune.study.report.table import DASH, DIVERGED, NO_ARM
from sgtune.study.studies import artifact


@pytest.fixture(scope="module", params=[1, 3], ids=["one replicate", "three replicates"])
def records(request):
    return make_records(request.param)


@pytest.mark.parametrize(
    ("names", "model"), [(("1", "6"), "logistic"), (("2", "8"), "pmf"), (("3", "10"), "bnn")]
)
def test_tables_hold_mean_and_sd_of_the_replicates_and_name_the_diverged(records, names, model):
    for name in (*(f"table{number}" for number in names), "further_metrics"):
        found, metrics = make(name, records), artifact(name).options["metrics"][model]
        found = [cell for cell in found if name != "further_metrics" or cell.model == model]
        cells = cells_by(found, "tuner", "metric", "sampler")
        assert list(dict.fromkeys(cell.metric for cell in found)) == list(metrics)
        assert {cell.model for cell in found} == {model}
        rows = record_of(records, model, "sgld", "grid")["table"]
        for metric in metrics:
            key, factor = SOURCES[metric]
            values = np.array([factor * row[key] for row in rows])
            cell = cells["grid", metric, "sgld"]
            assert (cell.value, cell.replicates) == (pytest.approx(values.mean(), rel=1e-12), len(rows))
            if len(rows) > 1 and METRICS[metric].has_spread:
                assert cell.sd == pytest.approx(values.std(ddof=1), rel=1e-9)
                assert cells["grid", metric, "sghmc-cv"].shown.endswith("(2/3)")
            else:
                assert cell.sd is None
            assert len(rows) > 1 or not cell.best
        assert cells["heuristic", metrics[0], "sghmc"].shown == "diverged"


@pytest.mark.parametrize("name", ["table2", "further_metrics", "xi_by_block"])
def test_nothing_is_best_by_a_distance_from_a_reference_that_is_not_trusted_or_with_one_tuning_run(name):
    def marked(trusted=True, tunings=2, **block):
        files = make_files(3, ("pmf",), tunings=tunings)
        reference = files["reference"]["pmf/nuts"]
        reference["trusted"] = trusted
        reference["blocks"]["users"] = reference["blocks"]["users"] | block
        for record in files["evaluation"].values():
            # The runs of one tuner have one number, so the best one is certain.
            for rank, tuner in enumerate(record["tuners"], 1):
                for run in (record["runs"][place] for place in tuner["runs"] if place is not None):
                    for key in ("relative_sd_error", "xi_rel", "functional_error", "ksd"):
                        # No KSD is below its floor: such a KSD is not marked.
                        run["table"][key] = (10.0 if key == "ksd" else 0.1) * rank + 1e-6 * run["replicate"]
        return {cell.metric for cell in make(name, records_of(files)) if cell.best}

    is_further = name == "further_metrics"
    of_position = {"xi_rel_x100" if is_further else "relative_sd_error_x100"}
    judged = {"functional_error"} if is_further else set()
    others = {"ksd"} if name == "table2" else set()
    assert of_position | judged | others <= marked()
    assert marked(trusted=False) & (of_position | judged) == set()
    assert marked(r_hat_p99=1.06) & (of_position | judged) == judged
    assert others <= marked(trusted=False)
    assert marked(tunings=1) == set()


@pytest.mark.parametrize("name", ["table1", "table5", "regret", "published_comparison", "xi_by_block", "ood"])
def test_a_tuner_without_an_arm_is_named_and_nothing_else_changes(name):
    fields = ("model", "sampler", "tuner", "metric", "detail")
    before, after = (cells_by(make(name, make_records(1, lost=lost)), *fields) for lost in ((), ("grid",)))
    found = set()
    for key, cell in after.items():
        if (cell.sampler, cell.tuner) == ("sgld", "grid") and not cell.detail.endswith("paper"):
            found.add((cell.shown, cell.value, cell.best))
        else:
            assert cell.shown == before[key].shown
    assert found == {(NO_ARM, None, False)}


def test_errors_by_block_beside_that_of_all():
    records = make_records(3)
    found = make("xi_by_block", records)
    assert list(dict.fromkeys(cell.detail for cell in found)) == [*BLOCKS, "all parameters"]
    cells = cells_by(found, "sampler", "tuner", "detail")
    rows = record_of(records, "pmf", "sgld", "grid")["table"]
    errors = [100 * row["relative_sd_error_by_block"]["items"] for row in rows]
    own = cells["sgld", "grid", "items"]
    assert (own.value, own.sd) == pytest.approx((np.mean(errors), np.std(errors, ddof=1)))
    whole = [100 * row["relative_sd_error"] for row in rows]
    assert cells["sgld", "grid", "all parameters"].value == pytest.approx(np.mean(whole))
    assert cells["sghmc", "heuristic", "users"].shown == "diverged"


def test_entropies_and_how_well_they_tell_the_sets_apart():
    records = make_records(1)
    cells = cells_by(make("ood", records), "sampler", "tuner", "metric")
    account = record_of(records, "bnn", "sgld", "mamba-ksd")["table"][0]["ood"]
    for metric in ("auroc", "entropy_test", "entropy_ood"):
        assert cells["sgld", "mamba-ksd", metric].value == account[metric]
    for account in ({"name": "fashion-mnist", "missing": "no source of it answered"}, None):
        for record in records["evaluation"]:
            record["table"] = [row | {"ood": account} for row in record["table"]]
        assert {cell.shown for cell in make("ood", records)} == {DASH, DIVERGED}


D, M, N = 400, 60, 25
VALUES = {"ksd": 50.0, "ksd_scaled": 3.0}
"""KSDs of M draws of NUTS."""


@pytest.fixture(scope="module")
def in_many_dimensions():
    """A run whose floors by the mode, as evaluation writes them, would be as large as in 400 dimensions."""
    files = make_files(1, ("pmf",))
    files["reference"]["pmf/nuts"]["sd"] = [1.0] * D
    for row in files["widths"]["pmf"]["rows"]:
        if (row["width"], row["discrepancy"]) == (1, "ksd"):
            row |= {"n_points": M, "value": VALUES["ksd" if row["scale"] == "identity" else "ksd_scaled"]}
    for record in files["evaluation"].values():
        for run in record["runs"]:
            run["table"] |= {"ksd_floor": 77.0, "ksd_scaled_floor": math.sqrt(2 * D / N)}
    return records_of(files)


@pytest.mark.parametrize("key", VALUES)
def test_the_floor_is_of_the_draws_of_the_run_and_not_of_the_subset_that_measures_it(in_many_dimensions, key):
    """√((E|score|² + D) / n) for the n draws of the run: M draws of NUTS only measure its numerator."""
    expected = pytest.approx(VALUES[key] * math.sqrt(M / N))
    found = [cell for name in ("table8", "further_metrics") for cell in make(name, in_many_dimensions)]
    cells = cells_by(found, "sampler", "tuner", "metric")
    assert cells["sgld", "mamba-ksd", f"{key}_floor"].value == expected
    assert cells["sgld", "mamba-ksd", key].floor == expected


def test_no_floor_without_draws_of_nuts_where_parameters_are_many(in_many_dimensions):
    assert with_floors(in_many_dimensions | {"widths": []})[0]["table"][0]["ksd_floor"] is None
    few = make_records(1, ("logistic",))
    assert with_floors(few) == few["evaluation"]
