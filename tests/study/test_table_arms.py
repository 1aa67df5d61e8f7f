"""Tables of tuners that chose the same arm, or none."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import pandas as pd
import pytest
from artifact_records import (
    MODELS,
    SAMPLERS,
    cells_by,
    choose,
    make_files,
    records_of,
    write_files,
)
from sgtune.study.report.layout import NO_ARM

from sgtune.study.report import TABLES, make_table


def test_tuners_that_chose_the_same_arm_show_the_same_numbers_and_share_the_bold():
    files = make_files(3, ("logistic",))
    choose(files, "logistic", "sgld", "grid", like="mamba-ksd")
    for tuner in ("mamba-fssd", "mamba-ksd-scaled", "grid-ksd"):
        choose(files, "logistic", "sgld", tuner, like="heuristic")
    evaluation = files["evaluation"]["logistic/sgld"]
    shared = next(tuned["runs"] for tuned in evaluation["tuners"] if tuned["tuner"] == "grid")
    for i, run in enumerate(evaluation["runs"]):
        # No KSD is below its floor: such a KSD is not marked.
        run["table"]["ksd"] = run["replicate"] + (10 if i in shared else 100)
    records = records_of(files)
    for name in ("table1", "table6"):
        cells = cells_by(TABLES[name](records), "tuner", "metric", "sampler")
        ksd = {tuner: cell for (tuner, *rest), cell in cells.items() if rest == ["ksd", "sgld"]}
        assert {tuner for tuner, cell in ksd.items() if cell.best} == {"grid", "mamba-ksd"}
        assert (ksd["grid"].value, ksd["grid"].sd) == (ksd["mamba-ksd"].value, ksd["mamba-ksd"].sd)
        assert ksd["grid"].shown == ksd["mamba-ksd"].shown != ksd["heuristic"].shown


@pytest.mark.parametrize(("metric", "floor"), [("ksd", 2.8), ("ksd_scaled", 0.14)])
@pytest.mark.parametrize("below", [False, True])
def test_the_smallest_ksd_is_not_marked_below_that_of_exact_draws(metric, floor, below):
    files = make_files(3, ("logistic",))
    evaluation = files["evaluation"]["logistic/sgld"]
    best = next(tuned["runs"] for tuned in evaluation["tuners"] if tuned["tuner"] == "grid")
    for i, run in enumerate(evaluation["runs"]):
        lowest = floor * (0.9 if below else 1.1)
        run["table"][metric] = lowest * (1 if i in best else 2) + 1e-6 * run["replicate"]
    cells = cells_by(TABLES["table6"](records_of(files)), "tuner", "metric", "sampler")
    marked = {tuner for (tuner, *rest), cell in cells.items() if rest == [metric, "sgld"] and cell.best}
    assert marked == (set() if below else {"grid"})


# Tables of choices and of their errors. All other tables show the tried arms and their times.
OF_CHOICES = {
    *("table1", "table2", "table3", "table5", "table6", "table7", "table8", "table9", "table10"),
    *("regret", "published_comparison", "xi_by_block", "ood"),
}
FIELDS = ("model", "sampler", "tuner", "metric", "detail")
WHY = (
    "\n“– (no arm)”: the tuner chose no arm: all that it tried diverged, left the posterior, or are unstable by "
    "theory."
)


@pytest.fixture(scope="module", params=["sgld", "sghmc-cv"])
def with_and_without_arm(request):
    """Records of a run in which grid search always found an arm, and of one in which it found none for one sampler."""
    files = make_files(1)
    before = records_of(files)
    for model in MODELS:
        choose(files, model, request.param, "grid")
    return before, records_of(files), request.param


# The headline table is a mean over samplers with an arm: see test_table_headline.
@pytest.mark.parametrize("name", [name for name in TABLES if name != "headline"])
def test_a_tuner_without_an_arm_is_named_and_nothing_else_on_the_page_changes(with_and_without_arm, name):
    before, after, sampler = with_and_without_arm
    before, after = (TABLES[name](records) for records in (before, after))
    assert after.caption == before.caption + (WHY if name in OF_CHOICES else "")
    assert [(row.labels, len(row.cells)) for row in after.rows] == [
        (row.labels, len(row.cells)) for row in before.rows
    ]
    assert (after.title, after.columns, after.stub) == (before.title, before.columns, before.stub)
    before, after = cells_by(before, *FIELDS), cells_by(after, *FIELDS)
    own = set()
    for key, cell in after.items():
        of_grid = (cell.sampler, cell.tuner) == (sampler, "grid")
        if name in OF_CHOICES and of_grid and before[key].shown != "–" and cell.detail != "paper":
            own.add(cell.shown)
            if cell.detail == "ratio":
                assert cell.shown == "–"
            else:
                assert (cell.shown, cell.value, cell.best) == (NO_ARM, None, False)
        else:
            assert cell.shown == before[key].shown
        # If its arm was the best, another one is now.
        assert cell.best == before[key].best or (cell.sampler == sampler and name in OF_CHOICES)
    assert own == (
        {NO_ARM} | ({"–"} if name == "published_comparison" else set()) if name in OF_CHOICES else own
    )
    assert bool(own) == (name in OF_CHOICES)


def test_no_arm_is_printed_in_every_format(tmp_path):
    files = make_files(1, ("logistic",))
    choose(files, "logistic", "sgld", "grid")
    formats = {kind: tmp_path / f"table1.{kind}" for kind in ("csv", "md", "html")}
    make_table("table1", write_files(files, tmp_path / "run"), **formats)
    texts = {kind: path.read_text(encoding="utf-8") for kind, path in formats.items()}
    table = pd.read_csv(formats["csv"]).set_index(["tuner", "sampler"])
    assert table.loc[("grid", "sgld"), "shown"].tolist() == [NO_ARM] * 2
    assert texts["csv"].count(NO_ARM) == 2
    assert texts["md"].count(f"| {NO_ARM} |") == 2
    assert texts["html"].count(f'<td class="missing">{NO_ARM}</td>') == 2
    assert all(WHY.strip() in texts[kind] for kind in ("md", "html"))


def test_ood_table_says_if_no_tuner_found_an_arm():
    files = make_files(1, ("bnn",))
    for sampler in SAMPLERS:
        for tuned in files["tuning"][f"bnn/{sampler}"]["tuners"]:
            choose(files, "bnn", sampler, tuned["tuner"])
    assert "There is nothing to show: no tuner found an arm." in TABLES["ood"](records_of(files)).caption
