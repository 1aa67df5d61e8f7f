"""The registry of studies: names, captions, what a run makes, and how an artifact is made from files."""

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from artifact_records import PROVENANCE, make_files
from config_files import valid
from matplotlib.figure import Figure

from sgtune.study.report.artifact import Artifact
from sgtune.study.report.labels import METRICS
from sgtune.study.report.publish import read_captions
from sgtune.study.report.table import KNOWN, Caption, Cell, frame_of
from sgtune.study.studies import (
    MAIN,
    STUDIES,
    artifacts_of_run,
    files_of,
    find,
    make_figure,
    make_table,
    maker_of,
)
from sgtune.support.errors import DataError, InputError
from sgtune.support.files import write_json

ROOT = Path(__file__).parents[2]
CAPTIONS = read_captions(ROOT)
NAMES = [name for study in STUDIES.values() for name in (*study.tables, *study.figures)]
FIELDS = {"model", "sampler", "tuner", "metric", "detail", "origin"}


def test_names_and_titles_are_unique_over_all_studies():
    assert len(set(NAMES)) == len(NAMES)
    assert len({find(name).about.title for name in NAMES}) == len(NAMES)
    with pytest.raises(InputError, match="artifact: 'regert' is not known \\(did you mean 'regret'"):
        find("regert")


@pytest.mark.parametrize("study", STUDIES)
def test_no_name_of_a_study_prints_another_for_what_all_studies_know(study):
    own = STUDIES[study].names
    for known in (*KNOWN.values(), {name: metric.label for name, metric in METRICS.items()}):
        both = own.keys() & known
        assert {name: own[name] for name in both} == {name: known[name] for name in both}


@pytest.mark.parametrize("name", NAMES)
def test_an_artifact_has_a_maker_kinds_of_its_study_and_a_layout(name):
    about, study, form = find(name)
    assert callable(maker_of(name))
    assert about.kinds
    assert set(about.kinds) <= set(STUDIES[study].kinds)
    assert set(about.rows + about.columns + tuple(about.stub)) <= FIELDS | set(about.parts)
    assert bool(about.rows) == (form == "table")


def test_every_artifact_has_a_caption_and_every_caption_an_artifact():
    assert set(CAPTIONS) == set(NAMES)
    for caption in CAPTIONS.values():
        assert len(caption.above.split()) <= 40
        assert len(caption.notes.split()) <= 80


def run_of(config):
    return {study: artifacts_of_run(config, study) for study in STUDIES}


def test_a_run_makes_what_it_has_something_to_show_of():
    everything = run_of(valid(horizons__seconds=[1, 10]))
    # Of a model of one's own: `test_own`.
    of_own = {name for name in NAMES if find(name).about.model == "own"}
    assert {name for names in everything.values() for name in names} == set(NAMES) - of_own
    of_default = run_of(valid())
    assert set(everything["mamba"]) - set(of_default["mamba"]) == {"horizons"}
    small = {"models": ["pmf"], "reference__nuts": False, "regret__prediction_draws": 9}
    pmf = set(run_of(valid(**small, per_model__pmf__tuners=["mamba-ksd"]))["mamba"])
    assert {"table2", "table7", "table8", "figure4", "regret", "published_comparison"} <= pmf
    # Of other models, of theory's arms, and against a reference.
    assert not {"table1", "figure5", "ood", "theory", "reference", "xi_by_block", "widths"} & pmf
    theory = run_of(valid(models=["logistic"], tuners=["theory"]))["mamba"]
    assert [name for name in theory if "theory" in find(name).about.without] == []
    # Without any of their results.
    few = run_of(valid(**small, posteriors__models=[]))
    assert set(few["adam_mcmc"]) == {name for name in everything["adam_mcmc"] if find(name).about.needs == ()}
    assert set(everything["posteriors"]) - set(few["posteriors"]) == {"preconditioned"}
    assert few["audit"] == ["claims"]
    assert "defects" not in run_of(valid(audit__samplers=[]))["audit"]
    assert files_of(valid(run="mine"), "ccadl")[0].startswith("results/mine/ccadl/tables/")


def test_a_further_study_has_a_section_of_its_name_and_the_main_one_is_not_published_as_it():
    for study in STUDIES.keys() - {MAIN}:
        assert study in valid()
        with pytest.raises(InputError, match=f"published_as: '{study}' is not allowed"):
            valid(published_as=study)


def count(records, *, factor):
    """Cells of the records of regret, and figures of them."""
    return [Cell(one["model"], one["sampler"], "", "jobs", factor) for one in records["regret"]]


@pytest.fixture
def toys(monkeypatch, tmp_path):
    """A table and a figure of a module of their own, and the files of two records of regret and one of tuning."""

    def draw(records):
        figure = Figure()
        figure.text(0, 0, f"{len(records['regret'])} records")
        return figure

    module = ModuleType("sgtune.study.mamba.toys")
    module.count, module.draw = count, draw
    monkeypatch.setitem(sys.modules, module.__name__, module)
    about = Artifact(("regret",), "Toys", rows=("sampler",), maker="toys:count", model="logistic")
    monkeypatch.setitem(STUDIES[MAIN].tables, "toys", about._replace(options={"factor": 2}))
    monkeypatch.setitem(STUDIES[MAIN].figures, "toy", about._replace(maker="toys:draw"))
    files, paths = make_files(1, ("logistic", "pmf")), []
    for kind, name in [("regret", "logistic/sgld"), ("regret", "pmf/sgld"), ("tuning", "logistic/sgld")]:
        paths.append(tmp_path / kind / f"{name}.json")
        write_json(paths[-1], files[kind][name])
    return paths


def test_a_table_is_an_entry_a_function_and_a_caption(toys, tmp_path):
    files = {kind: tmp_path / f"toys.{kind}" for kind in ("csv", "md", "html")}
    make_table("toys", toys, "What toys show.\n---\n", **files)
    assert files["csv"].read_text("utf-8").splitlines()[1:] == [
        "logistic,sgld,,jobs,,2,,,,,,1,1,False,False,2"
    ]
    facts = json.loads((tmp_path / "toys.json").read_text("utf-8"))
    # The provenance of its own records only.
    assert facts["sources"]["files"] == 1
    assert (facts["provenance"]["run"], facts["provenance"]["seed"]) == ("quick", 7)
    for kind in ("md", "html"):
        assert "What toys show." in files[kind].read_text("utf-8")
        assert f"seed 7 · commit {PROVENANCE['commit'][:10]} ·" in files[kind].read_text("utf-8")


def test_a_figure_is_an_entry_a_function_and_a_caption(toys, tmp_path):
    files = {kind: tmp_path / f"toy.{kind}" for kind in ("svg", "pdf", "html")}
    make_figure("toy", toys, "What a toy shows.\n---\nDots: toys.\n", **files)
    page = files["html"].read_text("utf-8")
    # The figure, its caption below, and where it comes from.
    assert page.index("<svg ") < page.index("What a toy shows.") < page.index("Dots: toys.")
    assert f"commit {PROVENANCE['commit'][:10]} ·" in page
    assert "1 records" in (tmp_path / "toy.svg").read_text("utf-8")
    assert PROVENANCE["commit"] in (tmp_path / "toy.svg").read_text("utf-8")
    assert (tmp_path / "toy.pdf").read_bytes()[:5] == b"%PDF-"


def test_what_cannot_be_made_is_named_in_one_line(toys):
    nowhere = dict.fromkeys(("csv", "md", "html"), "nowhere")
    with pytest.raises(InputError, match="table: 'toy' is not allowed; it is a figure"):
        make_table("toy", toys, "", **nowhere)
    with pytest.raises(DataError, match="toys: no record belongs to it; it needs at least one"):
        make_table("toys", toys[1:], "", **nowhere)
    # Of a maker that requires records.
    with pytest.raises(DataError, match="regret: no regret records; it needs at least one"):
        make_table("regret", toys[2:], "", **nowhere)


def test_the_number_of_replicates_is_all_that_notes_may_name():
    def below(cells, notes="Of {{ replicates }} runs."):
        return Caption(f"A.\n---\n{notes}").below(frame_of(cells))

    cells = [Cell("", "", "", "ksd", 1.0, sd=0.1, finite=n, replicates=n) for n in (3, 10, 2)]
    # A number of the paper is of no run of ours.
    paper = Cell("", "", "", "ksd", 1.0, detail="paper")
    assert below([*cells, paper]) == "Of 2 to 10 runs."
    assert below([cells[0], paper]) == "Of 3 runs."
    assert below([Cell("", "", "", "ksd", None, replicates=n) for n in (1, 4)]) == "Of 4 runs."
    with pytest.raises(Exception, match="'tunings' is undefined"):
        below(cells, "{{ tunings }}")
