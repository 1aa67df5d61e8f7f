"""The published copy of a finished study, its page, and README's numbers."""

import shutil
from pathlib import Path

import pytest
from config_files import ROOT

from sgtune.study.report.publish import (
    COPIED,
    IN_README,
    INDEX,
    MAIN_RUN,
    checksums,
    compare,
    origin_of,
    page_of,
    publish,
    published_folder,
    read_captions,
    show_results,
    sums_of_run,
    verify,
    write_index,
)
from sgtune.study.report.table import COLUMNS, Caption, read_frame
from sgtune.study.studies import STUDIES, find
from sgtune.support.errors import DataError, InputError
from sgtune.support.files import file_sha256, read_json, write_json

CAPTIONS = {name: Caption(f"What {name} shows.\n---\nIts notes.") for name in ("headline", "regret_dots")}
MAMBA = STUDIES["mamba"]
SOURCES = {
    **{"files": 3, "run": ["mine"], "seed": [0], "commit": ["a" * 40], "cpu": ["a CPU"], "cores": [2]},
    **{"versions": {}, "created": ["2025-12-29T01:00:00", "2025-12-31T23:00:00"]},
    **{"highest_load_before": None, "seconds": 1.0},
}
ROWS = """logistic,,mamba,over_oracle,,0.9,,0.01,,,,6,6,True,False,0.90 ± 0.01
pmf,,mamba,over_oracle,,,,,,,,0,6,False,False,– (reference)
logistic,,mamba,over_oracle,ξ(σ̂),3.5,,0.1,,,,6,6,False,False,3.50 ± 0.10
logistic,,grid,over_oracle,,5.0,,0.1,,,,6,6,False,True,5.0 ± 0.1
pmf,,grid,over_oracle,,,,,,,,0,6,False,True,– (reference)
logistic,,grid-smaller,over_oracle,,1.0,,,,,,1,1,False,True,1.00
pmf,,heuristic,over_oracle,,,,,,,,0,6,False,False,– (reference)
"""


def run_of(folder, rows=ROWS, **sources):
    """A finished run with a table and a figure: its manifest."""
    for name, text in {
        "tables/headline.csv": ",".join(COLUMNS) + "\n" + rows,
        "tables/headline.md": f"**Of {folder.name}**\n\n*3 result files · run mine · seed 0*\n",
        "tables/headline.html": "<p>Of a run alone.",
        "figures/regret_dots.svg": "<svg/>",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    write_json(folder / "tables/headline.json", {"sources": SOURCES | sources})
    files = checksums([folder / "tables/headline.html", folder / "figures/regret_dots.svg"])
    origin = {"cores": 2, "cpu": "a CPU", "created": "2026-01-02T03:04:05", "commit": "b" * 40}
    write_json(folder / "manifest.json", {"run": "mine", "files": files, "provenance": origin})
    return folder / "manifest.json"


def published(tmp_path, name=MAIN_RUN, **changes):
    folder = published_folder(tmp_path, name)
    publish(run_of(tmp_path / "runs" / name, **changes), folder, MAMBA, CAPTIONS)
    return folder


def test_publishing_replaces_a_study_and_keeps_the_others(tmp_path):
    main, other = published(tmp_path), published(tmp_path, "judges")
    (main / "tables/left_over.csv").write_text("of an older run")
    assert published(tmp_path, rows=ROWS.replace("0.9", "0.8")) == main
    values = [read_frame(folder / "tables/headline.csv")["value"][0] for folder in (main, other)]
    assert values == [0.8, 0.9]
    # No second copy of a table, and nothing of an older run: the page has the Markdown, the manifest the provenance.
    files = {path.relative_to(main).as_posix() for path in main.rglob("*") if path.is_file()}
    assert files == {"README.md", "figures/regret_dots.svg", "manifest.json", "tables/headline.csv"}
    assert read_json(main / "manifest.json")["sources"] == {"headline": SOURCES}
    index = (main.parent / "README.md").read_text("utf-8")
    for name in ("judges", MAIN_RUN):
        assert index.count(f"[{name}]({name}/README.md): {origin_of(main)}") == 1
    assert "Tables: 1, figures: 1." in index
    assert not (main.parent / f".{MAIN_RUN}").exists()


@pytest.mark.parametrize("commits", [[], ["a" * 40, "b" * 40], [f"{'a' * 40}-dirty"]])
def test_results_that_are_not_of_one_clean_commit_are_not_published(tmp_path, commits):
    with pytest.raises(DataError, match=r"headline\.json: made by .*from one clean"):
        published(tmp_path, commit=commits)
    assert not published_folder(tmp_path).exists()


def test_tables_of_two_commits_are_not_published_together(tmp_path):
    manifest = run_of(tmp_path / "run")
    other = tmp_path / "run/tables/regret.json"
    write_json(other, {"sources": SOURCES | {"commit": ["b" * 40]}})
    held = read_json(manifest)
    write_json(manifest, held | {"files": held["files"] | checksums([other])})
    with pytest.raises(DataError, match=f"made by {'a' * 40}, {'b' * 40}; .*from one clean"):
        publish(manifest, published_folder(tmp_path), MAMBA, CAPTIONS)
    assert not published_folder(tmp_path).exists()


def test_a_study_that_adds_to_a_finished_run_is_of_two_clean_commits_and_names_both(tmp_path):
    adding, folder = MAMBA._replace(n_commits=2), published_folder(tmp_path)
    commits = ["a" * 40, "b" * 40, "c" * 40]
    for wrong in (commits, ["a" * 40, f"{'b' * 40}-dirty"]):
        with pytest.raises(DataError, match="from at most 2 clean commits"):
            publish(run_of(tmp_path / "run", commit=wrong), folder, adding, CAPTIONS)
    publish(run_of(tmp_path / "run", commit=commits[:2]), folder, adding, CAPTIONS)
    assert origin_of(folder).endswith(f", commits {'a' * 10}, {'b' * 10}.")


def test_a_file_that_is_not_the_manifests_and_a_run_without_a_table_are_not_published(tmp_path):
    manifest = run_of(tmp_path / "run")
    (tmp_path / "run/tables/headline.csv").write_text("another")
    with pytest.raises(DataError, match=r"headline\.csv: not the file that"):
        publish(manifest, published_folder(tmp_path), MAMBA, CAPTIONS)
    write_json(
        manifest, read_json(manifest) | {"files": checksums([tmp_path / "run/figures/regret_dots.svg"])}
    )
    with pytest.raises(DataError, match=r"manifest\.json: names no table"):
        publish(manifest, published_folder(tmp_path), MAMBA, CAPTIONS)
    assert not published_folder(tmp_path).exists()


def test_a_run_does_not_replace_another_one(tmp_path):
    folder = published(tmp_path)
    kept = (folder / "manifest.json").read_text()
    manifest = run_of(tmp_path / "run")
    write_json(manifest, read_json(manifest) | {"run": "another"})
    with pytest.raises(
        InputError, match=r"^run: 'another' is not allowed to replace 'mine' in .*delete that first"
    ):
        publish(manifest, folder, MAMBA, CAPTIONS)
    assert (folder / "manifest.json").read_text() == kept


def test_verify_names_every_file_that_is_foreign_changed_or_missing(tmp_path):
    run, mamba = tmp_path / "mine", tmp_path / "mine/mamba"
    for name in (
        "evaluation/sgld.json",
        "cost/pmf.json",
        "data/logistic/rows.npy",
        "logs/job.log",
        "ccadl/curves.json",
    ):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(name)
    results = sums_of_run(run, STUDIES)
    assert results.keys() == {"evaluation/sgld.json", "cost/pmf.json", "data/logistic/rows.npy"}
    with pytest.raises(DataError, match="no study has a manifest"):
        verify(run, STUDIES)
    manifest = run_of(mamba)
    # Made for other runs, before or after this one was finished: no result of it.
    (run / "cost/table.json").write_text("the costs of all models")
    for known in (sums_of_run(run, STUDIES), results):
        write_json(manifest, read_json(manifest) | {"results": known})
        # A study that is not finished has no manifest, and its files are not judged.
        assert verify(run, STUDIES) == []
    (run / "evaluation/other.json").write_text("of another run")
    (run / "data/logistic/rows.npy").write_text("data/logistic/wors.npy")
    (mamba / "tables/headline.csv").unlink()
    assert verify(run, STUDIES) == [
        f"changed: {run / 'data/logistic/rows.npy'}",
        f"foreign: {run / 'evaluation/other.json'}",
        f"missing: {mamba / 'tables/headline.csv'}",
    ]


def compared(tmp_path, ours, theirs):
    """What `compare` says of two tables of rows "tuner,value,se,upper,replicates"; the sampler is always the same."""
    for name, rows in {"run": ours, "published": theirs}.items():
        lines = [
            f"logistic,sgld,{tuner},ksd,,{value},,{se},{upper},,,{n},{n},False,False,{value}"
            for tuner, value, se, upper, n in (row.split(",") for row in rows)
        ]
        csv = tmp_path / name / "tables/table1.csv"
        csv.parent.mkdir(parents=True, exist_ok=True)
        csv.write_text("\n".join([",".join(COLUMNS), *lines]) + "\n")
    return compare(tmp_path / "run", tmp_path / "published")


def test_a_run_is_compared_cell_by_cell_by_the_spread_of_its_replicates(tmp_path):
    theirs = ["mamba,10,3,,3", "grid,10,3,,3", "theory,10,,,1", "heuristic,,,4,3"]
    theirs += ["random,1,0.1,,3", "oracle,1,,,1"]
    # Three standard errors of the difference: 3 * hypot(3, 4) = 15. An upper end of 4 is 0 with an error of 2.
    ours = ["mamba,24.9,4,,3", "grid,25.1,4,,3", "theory,11,,,1", "heuristic,5.9,0,,3"]
    ours += ["oracle,1,,,1", "frozen,1,,,1"]
    assert compared(tmp_path, ours, theirs) == [
        "table1 logistic sgld frozen ksd: only here",
        "table1 logistic sgld grid ksd: 25.1 here, 10 published: differs",
        "table1 logistic sgld random ksd: only published",
        "table1 logistic sgld theory ksd: 11 here, 10 published: not judged",
        "2 of 3 cells agree; 2 are not judged, 2 are only in one run.",
    ]
    [line] = compared(tmp_path, theirs, theirs)
    assert line == "4 of 4 cells agree; 2 are not judged, 0 are only in one run."
    (tmp_path / "run/tables/table1.csv").unlink()
    with pytest.raises(DataError, match=r"no table of .* is there"):
        compare(tmp_path / "run", tmp_path / "published")


PUBLISHED = sorted(path.parent.name for path in (ROOT / "results/published").glob("*/manifest.json"))
REAL = read_captions(ROOT)
"""Of the artifacts."""


def test_readme_shows_the_published_run_and_nothing_else(tmp_path):
    for name in IN_README:
        shutil.copytree(published_folder(ROOT, name), published_folder(tmp_path, name))
    readme = Path(shutil.copy(ROOT / "README.md", tmp_path / "README.md"))
    show_results(readme, published_folder(tmp_path), STUDIES["audit"])
    assert readme.read_text(encoding="utf-8") == (ROOT / "README.md").read_text("utf-8")
    # An audit of another run says nothing of this one.
    manifest = published_folder(tmp_path, "audit") / "manifest.json"
    write_json(manifest, read_json(manifest) | {"run": "quick"})
    show_results(readme, published_folder(tmp_path), STUDIES["audit"])
    assert "| holds" not in readme.read_text(encoding="utf-8")


def lay_out_published(folder, captions):
    """Write the page of a published run again, from its CSVs, with today's captions, and with it the manifest, of the
    files that are there, and the index beside it."""
    manifest = read_json(folder / "manifest.json")
    files = [path for path in sorted(folder.glob("*/*")) if path.suffix in COPIED]
    tables = [path.stem for path in files if path.suffix == ".csv"]
    manifest["files"] = {path.relative_to(folder).as_posix(): file_sha256(path) for path in files}
    manifest["sources"] = {name: own for name, own in manifest["sources"].items() if name in tables}
    write_json(folder / "manifest.json", manifest)
    study = STUDIES[find(tables[0]).study]
    (folder / INDEX).write_text(page_of(folder, study, captions), encoding="utf-8")
    write_index(folder.parent)


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_published_is_laid_out_from_its_csvs_with_the_captions_of_today(tmp_path, name):
    """After a change: `lay_out_published` of every folder with `read_captions`."""

    def contents(folder):
        paths = [path for path in folder.rglob("*") if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}

    folder = published_folder(ROOT, name)
    named = read_json(folder / "manifest.json")["files"]
    assert contents(folder).keys() == {*named, "manifest.json", "README.md"}
    again = shutil.copytree(folder.parent, tmp_path / "published") / name
    lay_out_published(again, REAL)
    assert contents(again.parent) == contents(folder.parent)
