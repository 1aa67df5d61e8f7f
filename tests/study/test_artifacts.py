"""Tables and provenance, from small records."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import csv
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import jinja2
import pytest
from artifact_records import (
    MODELS,
    PROVENANCE,
    SAMPLERS,
    WORKFLOW,
    choose,
    make_files,
    make_records,
    make_tables,
    record_of,
    records_of,
    studied,
)

from sgtune.errors import DataError, InputError
from sgtune.study import catalogue
from sgtune.study.artifacts import (
    FIGURES,
    TABLES,
    caption_of,
    category_of,
    form_of,
    labels_of,
    make_table,
    requested,
)
from sgtune.study.artifacts.layout import Cell, format_number, lay_out, mark_best
from sgtune.study.artifacts.records import KINDS, load_records, provenances
from sgtune.study.artifacts.writers import to_html, to_markdown
from sgtune.study.provenance import summarise

ENTRIES = catalogue.TABLES | catalogue.FIGURES


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_tables(3, tmp_path_factory.mktemp("run"))


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


@pytest.mark.parametrize("name", ENTRIES)
def test_an_artifact_without_its_records_says_which_are_missing(name):
    maker, full = (TABLES | FIGURES)[name], make_records(1)
    if name == "timings":  # of whatever the run has: one without a reference has no widths
        with pytest.raises(DataError, match="timings: no record says which rule made it"):
            maker({kind: [] for kind in full})
        return
    for kind in ENTRIES[name].kinds:
        with pytest.raises(DataError, match=f"{name}: no {kind} records; it is made from at least one"):
            maker(full | {kind: []})
    if ENTRIES[name].model:
        others = make_records(1, tuple(set(MODELS) - {ENTRIES[name].model}))
        with pytest.raises(DataError, match=f"{name}: no {ENTRIES[name].kinds[0]} records"):
            maker(others)


def test_several_models_have_a_heading_each():
    table = TABLES["regret"](make_records(1))
    assert table.stub == ("Model", "Tuner", "Metric")
    page = to_html(table, "footer")
    headings = re.findall(r'colspan="8">([^<]*)<', page)
    assert headings == ["Logistic regression", "PMF", "Neural network"]
    assert page.index("Logistic regression") < page.index("Regret in ξ(σ̂)") < page.index("Neural network")
    assert TABLES["regret"](make_records(1, ("pmf",))).stub == ("Tuner", "Metric")


def test_columns_of_two_levels_stand_in_order_and_blanks_are_dashes():
    cells = [
        Cell("logistic", sampler, "grid", "ksd", 1.0, detail=detail)
        for sampler, detail in [("sgnht", "ours"), ("sgld", "ours"), ("sgld", "paper")]
    ]
    cells.append(replace(cells[0], tuner="mamba-ksd"))
    names = {"name": "t", "title": "", "caption": "", "stub": {"tuner": "Who"}}
    table = lay_out(cells, **names, rows=("tuner",), columns=("sampler", "detail"))
    assert table.columns == (("SGLD", "ours"), ("SGLD", "paper"), ("SGNHT", "ours"))
    assert table.stub == ("Who",)
    assert [[cell.shown for cell in row.cells] for row in table.rows] == [["–", "–", "1.00"], ["1.00"] * 3]


def test_a_record_for_each_tuner_of_a_file_with_the_runs_of_its_arm():
    files = make_files(2, ("logistic",))
    choose(files, "logistic", "sgld", "grid", like="mamba-ksd")
    choose(files, "logistic", "sgld", "mamba-fssd")
    records = records_of(files)
    assert {kind: len(found) for kind, found in records.items() if kind in ("tuning", "evaluation")} == {
        "tuning": 36,
        "evaluation": 36,
    }
    written = files["evaluation"]["logistic/sgld"]
    for tuned in written["tuners"]:
        record = record_of(records, "logistic", "sgld", tuned["tuner"])
        assert (record["n_data"], record["reason"]) == (800_000, tuned["reason"])
        assert record["best"] == record_of(records, "logistic", "sgld", tuned["tuner"], "tuning")["best"]
        if tuned["arm"] is None:
            assert (record["best"], record["table"], record["curves"]) == (None, [], [])
        else:
            arm = written["arms"][tuned["arm"]]
            assert record["best"] == {key: arm[key] for key in ("step_size", "batch_size", "n_leapfrog")}
            assert (record["table"], record["curves"]) == (arm["table"], arm["curves"])
    numbers = {tuned["tuner"]: tuned["arm"] for tuned in written["tuners"]}
    assert numbers["grid"] == numbers["mamba-ksd"]
    assert numbers["mamba-fssd"] is None


def test_the_provenance_of_a_file_is_counted_once_however_many_records_it_gives():
    files = make_files(1, ("pmf",))
    records = records_of(files)
    found = provenances({kind: records[kind] for kind in ("tuning", "evaluation", "sweep")})
    assert len(records["tuning"] + records["evaluation"]) == 2 * len(SAMPLERS) * 4
    # The files' accounts are equal, and count nevertheless.
    assert len(found) == 3 * len(SAMPLERS)
    summary = summarise(found)
    assert summary["files"] == 3 * len(SAMPLERS)
    assert summary["seconds"] == pytest.approx(PROVENANCE["seconds"] * 3 * len(SAMPLERS))


def test_tables_carry_the_provenance_of_their_own_records_only(made):
    folder, _paths = made
    for name, n_files in (("cost", len(MODELS)), ("regret", 36), ("table1", 6), ("table6", 6)):
        sidecar = json.loads((folder / f"{name}.json").read_text())
        assert sidecar["sources"]["files"] == n_files
    assert (sidecar["provenance"]["run"], sidecar["provenance"]["seed"]) == ("quick", 7)
    for kind in ("md", "html"):
        assert "seed 7 · commit 0123456789 ·" in (folder / f"table1.{kind}").read_text()


def test_html_and_markdown_escape_what_they_print():
    records = make_records(1)
    for record in records["evaluation"]:
        record["tuner"] = "a|<b>"
    table = TABLES["table6"](records)
    assert "A\\|<B>" in to_markdown(table, "footer")
    assert "A|&lt;B&gt;" in to_html(table, "footer")


def test_registries_agree():
    assert ENTRIES.keys() == TABLES.keys() | FIGURES.keys()
    assert {name for name in ENTRIES if form_of(name) == "figure"} == FIGURES.keys()
    assert {kind for entry in ENTRIES.values() for kind in entry.kinds} <= set(KINDS)
    assert {entry.model for entry in ENTRIES.values()} == {*MODELS, None}
    for entry in catalogue.MODELS.values():
        of_study = {entry.study.short[0], entry.study.long[0], entry.study.choices}
        assert of_study <= ENTRIES.keys()


def test_a_run_of_everything_requests_everything():
    assert set(requested(studied(), MODELS)) == set(ENTRIES)


OF_ALL = {
    *("table4", "tuning_time", "regret", "modes", "cost", "timings"),
    *("figure1", "figure2", "regret_dots"),
}


@pytest.mark.parametrize(
    ("triples", "referenced", "own"),
    [
        (
            [("logistic", "sgld", "grid-ksd")],
            ("logistic",),
            {"published_comparison", "widths", "reference", "table5", "table6", "figure3", "figure3_scaled"},
        ),
        (
            studied(("pmf",)),
            (),
            {"published_comparison", "table2", "table7", "table8", "figure4", "figure4_scaled"},
        ),
        (
            [("bnn", "sgld", "mamba-ece")],
            (),
            {"table3", "table9", "table10", "figure5", "ood", "ood_entropy"},
        ),
    ],
)
def test_a_run_requests_what_it_can_make_and_nothing_else(triples, referenced, own):
    assert set(requested(triples, referenced)) == OF_ALL | own
    records = make_records(1, (triples[0][0],))
    for kind in ("tuning", "evaluation"):
        any_tuner = {record["sampler"]: record for record in records[kind]}
        records[kind] = [any_tuner[sampler] | {"tuner": tuner} for _, sampler, tuner in triples]
    for name in requested(triples, referenced):
        (TABLES | FIGURES)[name](records)


def test_reports_list_artifacts_under_their_model():
    assert category_of(SimpleNamespace(table="table8")) == "PMF"
    assert category_of(SimpleNamespace(figure="figure5")) == "Neural network"
    assert category_of(SimpleNamespace(figure="figure1")) == "All models"


def test_every_artifact_has_a_title_of_its_own_which_the_report_shows():
    assert len({entry.title for entry in ENTRIES.values()}) == len(ENTRIES)
    for name, entry in ENTRIES.items():
        assert labels_of(SimpleNamespace(**{form_of(name): name})) == {"artifact": entry.title}
    records = make_records(1)
    assert {name: maker(records).title for name, maker in TABLES.items()} == {
        name: ENTRIES[name].title for name in TABLES
    }


def test_every_artifact_has_a_caption_of_its_own():
    template = jinja2.Template((WORKFLOW / "report" / "artifact.rst").read_text())
    captions = []
    for name in ENTRIES:
        caption = caption_of(SimpleNamespace(**{form_of(name): name}))
        captions.append(template.render(snakemake={"params": {"caption": caption}}).strip())
    assert len(set(captions)) == len(ENTRIES)
    assert all(len(caption) > 80 for caption in captions)


def test_bad_input_is_named(tmp_path):
    with pytest.raises(InputError, match="table: 'tabel1' is not known"):
        make_table("tabel1", [], csv="a", md="b", html="c")
    with pytest.raises(DataError, match="its path must name one of"):
        load_records([tmp_path / "elsewhere" / "x.json"])
    with pytest.raises(DataError, match="the file is missing"):
        load_records([tmp_path / "tuning" / "x.json"])


def test_the_workflow_reads_requires_without_the_heavy_imports():
    code = (
        "import sys, sgtune.study.artifacts as a; a.artifact; print({'jax', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
