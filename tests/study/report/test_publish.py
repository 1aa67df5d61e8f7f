"""The published copy of a finished study, its page, and README's numbers."""

import shutil
from pathlib import Path

import pytest

from sgtune.study.pipeline.provenance import describe
from sgtune.study.report.publish import (
    IN_README,
    MARKS,
    ORIGIN,
    checksums,
    origin_of,
    publish,
    published_folder,
    read_captions,
    show_results,
)
from sgtune.study.report.table import COLUMNS, Caption, read_frame, to_markdown
from sgtune.study.studies import STUDIES, lay_out_published
from sgtune.support.errors import DataError
from sgtune.support.files import read_json, write_json

ROOT = Path(__file__).parents[3]
CAPTIONS = {name: Caption(f"What {name} shows.\n---\nIts notes.") for name in ("headline", "regret_dots")}
MAMBA = STUDIES["mamba"]
SOURCES = {
    "files": 3,
    **{"run": ["mine"], "seed": [0], "commit": ["a" * 40], "cpu": ["a CPU"], "cores": [2]},
    "versions": {},
    "created": ["2025-12-29T01:00:00", "2025-12-31T23:00:00"],
    "highest_load_before": None,
    "seconds": 1.0,
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


def published(tmp_path, name="tuning", **changes):
    folder = published_folder(tmp_path, name)
    publish(run_of(tmp_path / "runs" / name, **changes), folder, MAMBA, CAPTIONS)
    return folder


def test_publishing_replaces_a_study_and_keeps_the_others(tmp_path):
    main, other = published(tmp_path), published(tmp_path, "judges")
    (main / "tables/left_over.md").write_text("of an older run")
    assert published(tmp_path, rows=ROWS.replace("0.9", "0.8")) == main
    assert read_frame(main / "tables/headline.csv")["value"][0] == 0.8
    assert not (main / "tables/left_over.md").exists()
    assert (other / "tables/headline.md").read_text().startswith("**Of judges**")
    assert not (main.parent / ".tuning").exists()
    # A run's HTML shows what its Markdown shows.
    assert not (main / "tables/headline.html").exists()


def test_a_page_shows_tables_and_figures_with_captions_and_says_once_where_they_are_from(tmp_path):
    page = (published(tmp_path) / "README.md").read_text()
    # The day and the commit of the results, not of a later drawing.
    origin = f"Run `mine`, 2 cores of a CPU, 2025-12-31, commit {'a' * 10}."
    assert page.startswith(f"# {MAMBA.label}: the published run `mine`\n\n{origin}\n\n")
    title = MAMBA.figures["regret_dots"].title
    picture = f"![{title}](figures/regret_dots.svg)"
    assert f"{picture}\n\n*{title}*\n\nWhat regret_dots shows.\n\nIts notes." in page
    assert page.endswith("**Of tuning**\n")


@pytest.mark.parametrize("commits", [[], ["a" * 40, "b" * 40], [f"{'a' * 40}-dirty"]])
def test_results_that_are_not_of_one_clean_commit_are_not_published(tmp_path, commits):
    with pytest.raises(
        DataError, match=r"headline\.json: made by .*; make the run again, all of it from one clean"
    ):
        published(tmp_path, commit=commits)
    assert not published_folder(tmp_path).exists()


def test_a_file_that_is_not_the_manifests_is_not_published(tmp_path):
    manifest = run_of(tmp_path / "run")
    (tmp_path / "run/tables/headline.md").write_text("another")
    with pytest.raises(DataError, match=r"headline\.md: not the file that"):
        publish(manifest, published_folder(tmp_path), MAMBA, CAPTIONS)
    assert not published_folder(tmp_path).exists()


def test_readme_has_the_regret_of_the_main_study_and_of_the_small_factorisation(tmp_path):
    readme = tmp_path / "README.md"
    main = published(tmp_path)
    published(tmp_path, "small_pmf_2", rows="pmf,,mamba,over_oracle,,1,,,,,,4,4,False,False,1.00\n")
    published(tmp_path, "quick", rows=ROWS.replace("0.9", "0.7"))
    readme.write_text(f"Before.\n{MARKS[0]}\nold\n{MARKS[1]}\nAfter.\n")
    show_results(readme, main)
    text = readme.read_text()
    assert (text[:8], text[-7:]) == ("Before.\n", "After.\n")
    table = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:1] == "|"
    ]
    assert table[0] == ["Tuner", "Logistic regression", "Small PMF"]
    assert table[2:] == [["Grid †", "5.0 ± 0.1", "–"], ["MAMBA (default)", "0.90 ± 0.01", "1.00"]]
    for name in ("tuning", "quick"):
        assert f"{origin_of(main.with_name(name))} [All of it](results/published/{name}/README.md)." in text
    assert "old" not in text
    readme.write_text(f"Before.\n{MARKS[0]}\nThe end is lost.\n")
    with pytest.raises(DataError, match="needs the lines"):
        show_results(readme, main)
    assert readme.read_text().endswith("lost.\n")


def test_published_tables_can_be_laid_out_again_from_their_csvs(tmp_path):
    folder = published(tmp_path)
    (folder / "figures/regret_dots.svg").unlink()
    lay_out_published(folder, CAPTIONS)
    frame, about = read_frame(folder / "tables/headline.csv"), MAMBA.tables["headline"]
    again = to_markdown(frame, about, CAPTIONS["headline"], describe(SOURCES), MAMBA.names)
    assert (folder / "tables/headline.md").read_text() == again
    assert ORIGIN.sub("", again).strip() in (folder / "README.md").read_text()
    # It is a whole published run, as before, without what is gone.
    publish(folder / "manifest.json", published_folder(tmp_path, "again"), MAMBA, CAPTIONS)
    files = read_json(published_folder(tmp_path, "again") / "manifest.json")["files"]
    assert list(files) == [f"tables/headline.{suffix}" for suffix in ("csv", "json", "md")]


PUBLISHED = sorted(path.parent.name for path in (ROOT / "results/published").glob("*/manifest.json"))
REAL = read_captions(ROOT)
"""Of the artifacts."""


def test_readme_shows_the_published_run_and_nothing_else(tmp_path):
    for name in IN_README:
        shutil.copytree(published_folder(ROOT, name), published_folder(tmp_path, name))
    readme = Path(shutil.copy(ROOT / "README.md", tmp_path / "README.md"))
    show_results(readme, published_folder(tmp_path))
    assert readme.read_text(encoding="utf-8") == (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_published_is_laid_out_from_its_csvs_with_the_captions_of_today(tmp_path, name):
    """After a change: `lay_out_published` of every folder with `read_captions`."""

    def contents(folder):
        paths = [path for path in folder.rglob("*") if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}

    folder = published_folder(ROOT, name)
    assert contents(folder).keys() == {
        *read_json(folder / "manifest.json")["files"],
        "manifest.json",
        "README.md",
    }
    again = shutil.copytree(folder, tmp_path / name)
    lay_out_published(again, REAL)
    assert contents(again) == contents(folder)
