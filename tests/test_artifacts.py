"""Tables and provenance, from small records."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import csv
import json
import math
import re
import subprocess
import sys
from html.parser import HTMLParser

import jinja2
import numpy as np
import pandas as pd
import pytest
from artifact_records import N_DATA, PROVENANCE, SAMPLERS, TUNERS, WORKFLOW, make_records, write_records

from sgtune.artifacts import FIGURES, REQUIRES, TABLES, make_table
from sgtune.artifacts.comparisons import regret_cells
from sgtune.artifacts.layout import Cell, format_number, mark_best
from sgtune.artifacts.provenance import collect, summarise
from sgtune.artifacts.records import KINDS, load_records
from sgtune.artifacts.writers import to_markdown
from sgtune.errors import DataError, InputError


@pytest.fixture(scope="module", params=[1, 3], ids=["one replicate", "three replicates"])
def made(request, tmp_path_factory):
    """Every table of a run, and the files it was made from."""
    folder = tmp_path_factory.mktemp("run")
    paths = write_records(make_records(request.param), folder)
    for name in TABLES:
        make_table(name, paths, **{kind: folder / f"{name}.{kind}" for kind in ("csv", "md", "html")})
    return folder, paths


class Body(HTMLParser):
    """The text of the data cells of a page, in order, and whether each is bold."""

    def __init__(self):
        super().__init__()
        self.cells, self.inside, self.bold = [], False, False

    def handle_starttag(self, tag, attrs):
        if tag == "td":
            self.inside, self.bold, self.text = True, False, ""
        self.bold |= self.inside and tag == "b"

    def handle_data(self, data):
        if self.inside:
            self.text += data

    def handle_endtag(self, tag):
        if tag == "td":
            self.cells.append((self.text, self.bold))
            self.inside = False


@pytest.mark.parametrize(
    ("value", "form", "sd", "text"),
    [
        (66.04, "significant", None, "66.0"),
        (0.12345, "significant", None, "0.123"),
        (53_972.0, "significant", 1_234.0, "54,000 ± 1,200"),
        (0.9996, "significant", 0.02, "1.00 ± 0.02"),
        (2.5e9, "significant", 1e8, "(2.50 ± 0.10) × 10⁹"),
        (1.5e-7, "significant", None, "1.50 × 10⁻⁷"),
        (0.0, "significant", None, "0"),
        (math.log10(1 / 800_000), "general", None, "−5.9"),
        (-6.0, "general", None, "−6"),
        (22_255.4, "count", 310.2, "22,255 ± 310"),
        (3000.3, "printed", None, "3,000.3"),
    ],
)
def test_numbers_have_three_significant_digits(value, form, sd, text):
    assert format_number(value, form, sd) == text


def cells_of(metric, *values, **changes):
    return [Cell("logistic", "sgld", str(i), metric, value, **changes) for i, value in enumerate(values)]


def test_best_is_the_lowest_or_highest_with_ties_as_printed():
    assert [c.best for c in mark_best(cells_of("ksd", 3.001, None, 3.004, 4.0))] == [True, False, True, False]
    assert [c.best for c in mark_best(cells_of("accuracy_percent", 93.0, 94.0))] == [False, True]
    assert not any(c.best for c in mark_best(cells_of("accuracy_percent", 93.91, 93.89)))
    assert not any(c.best for c in mark_best(cells_of("n_samples", 1, 2)))
    assert not any(c.best for c in mark_best(cells_of("ksd", None, None)))


def test_a_mean_over_the_lucky_replicates_is_never_best():
    cells = cells_of("ksd", 1.0, finite=2, replicates=3) + cells_of("ksd", None, 5.0)
    assert [cell.best for cell in mark_best(cells)] == [False, False, True]
    assert cells[0].shown == "1.00 (2/3)"


@pytest.mark.parametrize("name", TABLES)
def test_csv_markdown_and_html_print_the_same(made, name):
    folder, _ = made
    with (folder / f"{name}.csv").open(encoding="utf-8") as file:
        tidy = [(row["shown"], row["best"] == "True") for row in csv.DictReader(file)]
    page = Body()
    page.feed((folder / f"{name}.html").read_text(encoding="utf-8"))
    lines = [
        row for row in (folder / f"{name}.md").read_text(encoding="utf-8").splitlines() if row[:1] == "|"
    ]
    n_stub = lines[1].count(":--")
    printed = [cell for row in lines[2:] for cell in row.strip("| ").split(" | ")[n_stub:]]
    assert page.cells == tidy
    assert [(cell.strip("*"), cell.startswith("**")) for cell in printed] == tidy


def test_table1_holds_mean_and_sd_of_the_replicates_and_names_the_diverged(made):
    folder, paths = made
    table = pd.read_csv(folder / "table1.csv").set_index(["tuner", "metric", "sampler"])
    assert len(table) == 5 * 2 * 6
    record = next(
        r for r in load_records(paths)["evaluation"] if (r["sampler"], r["tuner"]) == ("sgld", "grid")
    )
    errors = np.array([100 * row["relative_sd_error"] for row in record["table"]])
    cell = table.loc["grid", "relative_sd_error_x100", "sgld"]
    assert cell["value"] == pytest.approx(errors.mean(), rel=1e-12)
    assert cell["replicates"] == errors.size
    if errors.size > 1:
        assert cell["sd"] == pytest.approx(errors.std(ddof=1), rel=1e-12)
        assert table.loc["grid", "ksd", "sghmc-cv"]["shown"].endswith("(2/3)")
    else:
        assert math.isnan(cell["sd"])
        assert "±" not in cell["shown"]
    assert table.loc["heuristic", "ksd", "sghmc"]["shown"] == "diverged"
    assert table.groupby(["metric", "sampler"])["best"].sum().eq(1).all()


def test_a_tuner_that_was_not_run_has_no_row_and_a_missing_run_a_dash():
    records = make_records(1)
    records["evaluation"] = [
        record
        for record in records["evaluation"]
        if record["tuner"] != "mamba-fssd" and (record["tuner"], record["sampler"]) != ("grid", "sgld")
    ]
    table = TABLES["table1"](records)
    assert [row.labels[0] for row in table.rows[::2]] == [
        "MAMBA-KSD",
        "Grid",
        "Heuristic",
        "MAMBA-KSD scaled",
    ]
    assert [cell.shown for cell in table.rows[2].cells].count("–") == 1
    with pytest.raises(DataError, match="table1: no evaluation records"):
        TABLES["table1"]({"evaluation": []})


def test_several_models_get_a_column_of_their_own():
    table = TABLES["table6"](make_records(1, models=("pmf", "logistic")))
    assert table.stub == ("Model", "Sampler", "Metric")
    assert (table.rows[0].labels[0], table.rows[-1].labels[0]) == ("Logistic regression", "PMF")


def test_table4_and_5_say_what_was_tuned_and_chosen(made):
    folder, _paths = made
    tuned = pd.read_csv(folder / "table4.csv").set_index(["sampler", "tuner"])["shown"]
    assert tuned["sgld", "mamba-ksd"] == "h, n (16)"
    assert tuned["sghmc", "grid"] == "h, L (8)"
    assert tuned["sgnht", "heuristic"] == "fixed"
    chosen = pd.read_csv(folder / "table5.csv").set_index(["sampler", "tuner", "metric"])["value"]
    assert chosen["sgld", "heuristic", "log10_step_size"] == pytest.approx(-math.log10(N_DATA))
    assert chosen["sghmc", "heuristic", "batch_percent"] == pytest.approx(10)
    assert chosen.xs("n_leapfrog", level="metric").size == 2 * len(TUNERS)


def test_regret_is_the_error_of_the_chosen_arm_over_the_smallest():
    records = make_records(1)
    cells = {(cell.sampler, cell.tuner, cell.metric): cell for cell in regret_cells(records)}
    assert all(c.value >= 1 for (_, t, m), c in cells.items() if m == "regret" and t != "heuristic")
    for sweep in records["sweep"]:
        errors = [row["relative_sd_error"] for row in sweep["rows"] if not row["is_heuristic"]]
        smallest = min(error for error in errors if error is not None)
        expected = None if sweep["sampler"] == "sghmc" else 0.3 / smallest
        assert cells[sweep["sampler"], "heuristic", "regret"].value == expected
        oracle = cells[sweep["sampler"], "oracle", "relative_sd_error_x100"]
        assert oracle.value == pytest.approx(100 * smallest)
    assert cells["sghmc", "heuristic", "regret"].shown == "diverged"


def sweep_of(errors, heuristic):
    rows = [
        {
            "step_size": 10.0**-i,
            "batch_size": 8,
            "n_leapfrog": None,
            "relative_sd_error": e,
            "is_heuristic": False,
        }
        for i, e in enumerate(errors)
    ]
    arm = {"step_size": 0.5, "batch_size": 8, "n_leapfrog": None, "is_heuristic": True}
    rows.append(arm | {"relative_sd_error": heuristic})
    return {"model": "logistic", "sampler": "sgld", "rows": rows}


@pytest.mark.parametrize(
    ("tuner", "step_size", "shown"),
    [
        ("grid", 1.0, "diverged"),
        ("grid", float(np.float32(0.1)), "2.00"),
        ("grid", 0.01, "1.00"),
        ("grid", 0.03, "–"),
        ("heuristic", 0.5, "0.500"),
    ],
)
def test_regret_by_hand(tuner, step_size, shown):
    best = {"step_size": step_size, "batch_size": 8, "n_leapfrog": None}
    tuning = {"model": "logistic", "sampler": "sgld", "tuner": tuner, "best": best}
    cells = regret_cells({"tuning": [tuning], "sweep": [sweep_of([None, 0.4, 0.2], 0.1)]})
    assert cells[0].shown == shown
    assert cells[-1].value == pytest.approx(20)


def test_tuning_time_is_compared_with_mamba(made):
    folder, _paths = made
    table = (
        pd.read_csv(folder / "tuning_time.csv")
        .set_index(["tuner", "metric", "sampler"])["value"]
        .sort_index()
    )
    assert np.allclose(table["mamba-ksd", "wall_ratio"], 1)
    seconds = table["grid", "wall_seconds"] / table["mamba-ksd", "wall_seconds"]
    assert np.allclose(table["grid", "wall_ratio"], seconds)


def test_provenance_names_machine_versions_and_seconds():
    found = collect("quick", 3).finish()
    assert (found["run"], found["seed"]) == ("quick", 3)
    assert found["versions"]["jax"]
    assert found["cores"] >= 1
    assert found["cpu"]
    assert found["seconds"] >= 0
    assert found["commit"] is None or re.fullmatch(r"[0-9a-f]{40,64}(-dirty)?", found["commit"])
    assert json.loads(json.dumps(found)) == found


def test_summary_holds_every_distinct_value():
    summary = summarise(
        [PROVENANCE, PROVENANCE | {"seed": 8, "load_before": [2.0, 1.0, 1.0]}, {"seed": None}]
    )
    assert summary["files"] == 3
    assert summary["seed"] == [7, 8]
    assert summary["seconds"] == 4.0
    assert summary["highest_load_before"] == 2.0
    assert summary["versions"] == {"jax": ["1.2.3"]}


def test_tables_carry_the_provenance_of_their_own_records_only(made):
    folder, _paths = made
    sidecar = json.loads((folder / "table1.json").read_text())
    assert sidecar["sources"]["files"] == len(SAMPLERS) * len(TUNERS)
    assert (sidecar["provenance"]["run"], sidecar["provenance"]["seed"]) == ("quick", 7)
    for kind in ("md", "html"):
        assert "seed 7 · commit 0123456789 ·" in (folder / f"table1.{kind}").read_text()


def test_html_and_markdown_escape_what_they_print():
    records = make_records(1)
    for record in records["evaluation"]:
        record["model"] = "a|<b>"
    records["evaluation"][0]["model"] = "other"
    assert "A\\|<B>" in to_markdown(TABLES["table6"](records), "footer")


def test_registries_agree():
    assert REQUIRES.keys() == TABLES.keys() | FIGURES.keys()
    assert {kind for kinds in REQUIRES.values() for kind in kinds} <= set(KINDS)


@pytest.mark.parametrize(("wildcard", "names"), [("table", TABLES), ("figure", FIGURES)])
def test_every_artifact_has_a_caption_of_its_own(wildcard, names):
    template = jinja2.Template((WORKFLOW / "report" / f"{wildcard}.rst").read_text())
    captions = [template.render(snakemake={"wildcards": {wildcard: name}}).strip() for name in names]
    assert len(set(captions)) == len(names)
    assert all(len(caption) > 80 for caption in captions)


def test_bad_input_is_named(tmp_path):
    with pytest.raises(InputError, match="table: 'tabel1' is not known"):
        make_table("tabel1", [], csv="a", md="b", html="c")
    with pytest.raises(DataError, match="its path must name one of"):
        load_records([tmp_path / "elsewhere" / "x.json"])
    with pytest.raises(DataError, match="the file is missing"):
        load_records([tmp_path / "tuning" / "x.json"])


def test_the_workflow_reads_requires_without_the_heavy_imports():
    code = "import sys, sgtune.artifacts as a; a.REQUIRES; print({'jax', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
