"""Tables and provenance, from small records."""

import subprocess
import sys
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
    record_of,
    records_of,
    studied,
)

from sgtune.study import catalogue
from sgtune.study.mamba.catalogue_figures import FIGURES as CATALOGUED_FIGURES
from sgtune.study.mamba.catalogue_tables import TABLES as CATALOGUED_TABLES
from sgtune.study.pipeline.provenance import summarise
from sgtune.study.report import (
    FIGURES,
    TABLES,
    caption_of,
    category_of,
    form_of,
    labels_of,
    make_table,
    requested,
)
from sgtune.study.report.records import KINDS, load_records, provenances
from sgtune.support.errors import DataError, InputError

ENTRIES = CATALOGUED_TABLES | CATALOGUED_FIGURES


@pytest.mark.parametrize("name", ENTRIES)
def test_an_artifact_without_its_records_says_which_are_missing(name):
    maker, full = (CATALOGUED_TABLES | CATALOGUED_FIGURES)[name], make_records(1)
    if name == "timings":  # of everything that the run has: without a reference there are no widths
        with pytest.raises(DataError, match="timings: no record names the rule that made it"):
            maker({kind: [] for kind in full})
        return
    for kind in ENTRIES[name].kinds:
        if kind == "widths" and ENTRIES[name].kinds[0] != kind:  # without draws of NUTS there are none
            assert maker(full | {kind: []}).rows
            continue
        with pytest.raises(DataError, match=f"{name}: no {kind} records; it needs at least one"):
            maker(full | {kind: []})
    if ENTRIES[name].model:
        others = make_records(1, tuple(set(MODELS) - {ENTRIES[name].model}))
        with pytest.raises(DataError, match=f"{name}: no {ENTRIES[name].kinds[0]} records"):
            maker(others)


def test_a_record_for_each_tuner_of_a_file_with_the_runs_of_its_arms():
    files = make_files(3, ("logistic",))
    choose(files, "logistic", "sgld", "grid", like="mamba-ksd")
    choose(files, "logistic", "sgld", "mamba-fssd")
    choose(files, "logistic", "sgld", "grid-ksd", tunings=(0,))
    records = records_of(files)
    # Each tuner has two tuning runs, except the heuristic and theory.
    assert {kind: len(records[kind]) for kind in ("tuning", "evaluation")} == {
        "tuning": 6 * 12,
        "evaluation": 6 * 7,
    }
    written = files["evaluation"]["logistic/sgld"]
    for tuned in written["tuners"]:
        record = record_of(records, "logistic", "sgld", tuned["tuner"])
        assert (record["n_data"], record["reason"]) == (800_000, tuned["reason"])
        chosen = [one["best"] for one in records["tuning"] if one["sampler"] == "sgld"]
        assert all(arm in chosen for arm in record["arms"])
        assert record["best"] == next((arm for arm in record["arms"] if arm is not None), None)
        for replicate, (place, row) in enumerate(zip(tuned["runs"], record["table"], strict=True)):
            if place is None:
                assert row == {"replicate": replicate, "no_arm": True}
            else:
                assert written["runs"][place]["arm"] == record["arms"][replicate % len(record["arms"])]
                assert row == written["runs"][place]["table"]
        runs = [place for place in tuned["runs"] if place is not None]
        assert record["curves"] == [row for place in runs for row in written["runs"][place]["curves"]]
    places = {tuned["tuner"]: tuned["runs"] for tuned in written["tuners"]}
    assert places["grid"] == places["mamba-ksd"]
    assert places["mamba-fssd"] == [None] * 3
    assert [place is None for place in places["grid-ksd"]] == [True, False, True]


def test_runs_behind_curves_alone_give_no_row_of_a_table():
    files = make_files(3, ("pmf",))
    choose(files, "pmf", "sgld", "grid", tunings=(0,))
    for run in files["evaluation"]["pmf/sgld"]["runs"]:
        run["table"] = run["table"] if run["replicate"] == 0 else None
    records = records_of(files)
    (row,) = record_of(records, "pmf", "sgld", "mamba-ksd")["table"]
    assert row["replicate"] == 0
    assert {row["replicate"] for row in record_of(records, "pmf", "sgld", "mamba-ksd")["curves"]} == {0, 1, 2}
    grid = record_of(records, "pmf", "sgld", "grid")
    assert grid["table"] == [{"replicate": 0, "no_arm": True}]
    assert {row["replicate"] for row in grid["curves"]} == {1}


def test_the_provenance_of_a_file_is_counted_once_however_many_records_it_gives():
    files = make_files(1, ("pmf",))
    records = records_of(files)
    found = provenances({kind: records[kind] for kind in ("tuning", "evaluation", "regret")})
    assert len(records["tuning"] + records["evaluation"]) == (7 + 4) * len(SAMPLERS)
    # The provenances of the files are equal, but each counts.
    assert len(found) == 3 * len(SAMPLERS)
    summary = summarise(found)
    assert summary["files"] == 3 * len(SAMPLERS)
    assert summary["seconds"] == pytest.approx(PROVENANCE["seconds"] * 3 * len(SAMPLERS))


def test_a_combined_reference_has_the_provenance_of_its_chains_where_others_have_their_number():
    own, chains = (
        PROVENANCE | {"rule": "combine_nuts"},
        [PROVENANCE | {"rule": "sample_nuts"} for _ in range(2)],
    )
    found = [
        {"chains": chains, "provenance": own},
        {"chains": 32, "provenance": PROVENANCE | {"rule": "bias"}},
    ]
    rules = [one["rule"] for one in provenances({"reference": found})]
    assert rules == ["sample_nuts", "sample_nuts", "combine_nuts", "bias"]


def test_registries_agree():
    assert ENTRIES.keys() == TABLES.keys() | FIGURES.keys()
    assert {name for name in ENTRIES if form_of(name) == "figure"} == FIGURES.keys()
    assert {kind for entry in ENTRIES.values() for kind in entry.kinds} <= set(KINDS)
    assert {entry.model for entry in ENTRIES.values()} == {*MODELS, None}
    for entry in catalogue.MODELS.values():
        of_study = {entry.study.short[0], entry.study.long[0], entry.study.choices}
        assert of_study <= ENTRIES.keys()


def test_a_run_of_everything_requests_everything():
    assert set(requested(studied(), MODELS, MODELS)) == set(ENTRIES)
    # Runs are tuned for several horizons only if their configuration says so.
    assert set(ENTRIES) - set(requested(studied(), MODELS)) == {"horizons"}


OF_ALL = {
    *("table4", "deviations", "tuning_time", "tuning_parts", "clocks", "headline"),
    *("regret", "modes", "cost", "timings"),
    *("figure1", "figure2", "regret_dots", "gaussian_ladder", "gaussian_ladder_dots"),
    *("sensitivity", "sensitivity_values", "signal_of_width"),
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
            {"table3", "table9", "table10", "figure5", "figure5_log_loss", "ood", "ood_entropy"},
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
        (CATALOGUED_TABLES | CATALOGUED_FIGURES)[name](records)


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
    code = "import sys, sgtune.study.report as a; a.artifact; print({'jax', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
