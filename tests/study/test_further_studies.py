"""Further studies: the effect of a registry entry, and that the main study does not change."""

# ruff: noqa: RUF001 - tables print signs of mathematics

import json
from importlib import import_module
from types import SimpleNamespace

import pytest
from config_files import raw_config, valid

from sgtune.study.config.sections import main_sections
from sgtune.study.mamba.catalogue_figures import FIGURES
from sgtune.study.mamba.catalogue_tables import TABLES
from sgtune.study.report import artifacts_of, caption_of, category_of, form_of, labels_of
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.publish import MAIN, MARKS, described, publish, published_folder, show_results
from sgtune.study.report.records import load_records
from sgtune.study.report.studies import STUDIES
from sgtune.support.errors import DataError
from sgtune.support.files import file_sha256, write_json


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_is_an_entry_a_section_and_a_package(study):
    entry, section = STUDIES[study], valid()[study]
    import_module(f"sgtune.study.{study}.settings").check(section)
    for name in artifacts_of(study):
        own = artifact(name)
        assert own.study == study
        assert set(own.kinds) <= set(entry.kinds)
        module, _, maker = own.maker.partition(":")
        assert callable(getattr(import_module(f"sgtune.study.{study}.{module}"), maker))
    for run in ("quick", "medium", "paper", "tiny"):
        assert raw_config(run)[study], f"{run} does not say how much of the study it makes"


def test_no_two_artifacts_have_a_name_or_a_title_in_common():
    further = [name for study in STUDIES for name in artifacts_of(study)]
    names = [*TABLES, *FIGURES, *further]
    assert len(names) == len(set(names))
    assert len({artifact(name).title for name in names}) == len(names)


@pytest.mark.parametrize("study", STUDIES)
def test_a_report_lists_a_study_under_its_own_name(study):
    for name in artifacts_of(study):
        job = SimpleNamespace(**{form_of(name): name})
        assert category_of(job) == STUDIES[study].label
        assert labels_of(job) == {"artifact": artifact(name).title}
        assert len(caption_of(job)) > 80


def test_the_main_study_does_not_depend_on_a_further_ones_section():
    config = valid()
    assert main_sections(config) == main_sections({**config, "ccadl": {}})
    assert set(config) - set(main_sections(config)) == set(STUDIES)


def test_result_files_are_of_the_kinds_of_their_study(tmp_path):
    path = tmp_path / "results/mine/ccadl/normal/sgnht.json"
    write_json(path, {"method": "sgnht"})
    assert load_records([path], ("normal", "settings"))["normal"] == [{"method": "sgnht"}]
    with pytest.raises(DataError, match="not a known kind of result"):
        load_records([path])


def run_of(folder, text):
    """A finished run of one table: its manifest."""
    table, manifest = folder / "tables/normal.md", folder / "manifest.json"
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_text(text)
    origin = {"cores": 2, "cpu": "a CPU", "created": "2026-01-02T03:04:05"}
    files = {"tables/normal.md": file_sha256(table)}
    write_json(manifest, {"run": "mine", "files": files, "provenance": origin})
    return manifest


def test_publishing_replaces_a_study_and_keeps_the_others(tmp_path):
    main, further = (published_folder(tmp_path, study) for study in (MAIN, "ccadl"))
    publish(run_of(tmp_path / "main", "main, first"), main)
    publish(run_of(tmp_path / "further", "of ccadl"), further)
    (main / "tables/left_over.md").write_text("of an older run")
    publish(run_of(tmp_path / "main", "main, second"), main)
    assert (main / "tables/normal.md").read_text() == "main, second"
    assert (further / "tables/normal.md").read_text() == "of ccadl"
    assert not (main / "tables/left_over.md").exists()
    assert json.loads((main / "manifest.json").read_text())["run"] == "mine"


def test_page_of_a_study_has_its_tables_and_says_once_where_they_are_from(tmp_path):
    origin = "*3 result files · run mine · seed 0*"
    folder = published_folder(tmp_path, "ccadl")
    publish(run_of(tmp_path / "further", f"**The table**\n\n| a |\n\n{origin}\n"), folder)
    page = (folder / "README.md").read_text()
    assert page.startswith("# CCAdL: the published run\n\nThe run `mine`, on 2 cores of a CPU, 2026-01-02.")
    assert "**The table**\n\n| a |\n" in page
    assert "result files" not in page


def test_figures_of_a_page_have_their_captions_and_it_says_how_long_the_jobs_took(tmp_path):
    manifest = run_of(tmp_path / "further", "the table")
    figure, sources = tmp_path / "further/figures/adam_distances.svg", tmp_path / "further/tables/normal.json"
    figure.parent.mkdir()
    figure.write_text("<svg/>")
    made = ["2025-12-29T01:00:00", "2025-12-31T23:00:00"]
    write_json(sources, {"sources": {"commit": ["a" * 40], "created": made, "seconds": 3_540.0}})
    held = json.loads(manifest.read_text())
    held["files"] |= {f"{path.parent.name}/{path.name}": file_sha256(path) for path in (figure, sources)}
    write_json(manifest, held)
    publish(manifest, published_folder(tmp_path, "adam_mcmc"))
    page = (published_folder(tmp_path, "adam_mcmc") / "README.md").read_text()
    about = STUDIES["adam_mcmc"].figures["adam_distances"]
    assert f"![{about.title}](figures/adam_distances.svg)\n\n*{described(about)}*" in page
    assert about.caption in page
    table = STUDIES["ccadl"].tables["normal"].title
    # The day of the results, not of a later drawing.
    assert f"2025-12-31, commit {'a' * 10}. The jobs behind the table “{table}” add up to 59 minutes." in page


MAIN_ROWS = """model,tuner,value,shown,at_test_set
logistic,mamba,0.9,0.90 ± 0.01,False
pmf,mamba,,– (reference),False
logistic,grid,5.0,5.0 ± 0.1,True
pmf,grid,,– (reference),True
logistic,grid-smaller,1.0,1.0,True
"""
SMALL_ROWS = """model,tuner,value,shown,at_test_set
pmf,mamba,1,1.00,False
"""


def test_readme_has_the_regret_of_the_main_study_and_of_the_small_factorisation(tmp_path):
    readme = tmp_path / "README.md"
    for study, rows in (
        ("tuning", MAIN_ROWS),
        ("small_pmf_2", SMALL_ROWS),
        ("quick", MAIN_ROWS.replace("0.90", "0.70")),
    ):
        manifest = run_of(tmp_path / f"run of {study}", "unused")
        table = manifest.parent / "tables/headline.csv"
        table.write_text(rows)
        held = json.loads(manifest.read_text())
        write_json(manifest, held | {"files": {"tables/headline.csv": file_sha256(table)}})
        publish(manifest, published_folder(tmp_path, study))
    readme.write_text(f"Before.\n{MARKS[0]}\nold\n{MARKS[1]}\nAfter.\n")
    show_results(readme, published_folder(tmp_path))
    text = readme.read_text()
    assert text.startswith("Before.\n")
    assert text.endswith("After.\n")
    assert "old" not in text
    assert (
        "| Tuner | Logistic regression | Small PMF |\n| :-- | --: | --: |\n"
        "| Grid † | 5.0 ± 0.1 | – |\n| MAMBA (default) | 0.90 ± 0.01 | 1.00 |\n\n" in text
    )
    assert "2026-01-02. [All of it](results/published/tuning/README.md)." in text
    # Of the default run, where its numbers are, and not the numbers.
    assert "2026-01-02. [All of it, to compare yours with](results/published/quick/README.md)." in text
    assert "0.70" not in text


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (
            "2026-01-02T03:32:00",
            "add up to 59 minutes, and ran beside each other: 32 minutes from the first job to the last.",
        ),
        ("2026-01-02T09:00:00", "add up to 59 minutes."),  # the run was interrupted
    ],
)
def test_a_published_run_says_how_long_it_lasted(tmp_path, last, said):
    manifest = run_of(tmp_path / "run", "the table")
    table = tmp_path / "run/tables/normal.json"
    made = ["2026-01-02T03:00:00", last]
    write_json(table, {"sources": {"commit": ["a" * 40], "created": made, "seconds": 3_540.0}})
    held = json.loads(manifest.read_text())
    held["files"]["tables/normal.json"] = file_sha256(table)
    write_json(manifest, held)
    publish(manifest, published_folder(tmp_path, "ccadl"))
    assert said in (published_folder(tmp_path, "ccadl") / "README.md").read_text()


def test_a_published_run_says_how_much_it_keeps_on_disk(tmp_path):
    manifest = run_of(tmp_path / "run", "the table")
    first, again = (published_folder(tmp_path, study) for study in ("first", "again"))
    publish(manifest, first)
    assert "on disk" not in (first / "README.md").read_text()
    write_json(tmp_path / "run/settings.json", {})
    (tmp_path / "run/draws.nc").write_bytes(b"0" * 120_000_000)
    publish(manifest, first)
    assert "The run keeps 0.12 GB on disk." in (first / "README.md").read_text()
    saved = tmp_path / "saved/run/tuning.json"
    saved.parent.mkdir(parents=True)
    saved.write_bytes(b"0" * 4_000_000)
    publish(manifest, first)
    assert (
        "0.12 GB on disk; `snakemake restore` rebuilds it on the same machine from 4 MB of saved files."
        in (first / "README.md").read_text()
    )
    # What is published is no run's folder, and keeps the size.
    publish(first / "manifest.json", again)
    assert (again / "manifest.json").read_bytes() == (first / "manifest.json").read_bytes()
    assert (again / "README.md").read_text().split("\n", 1)[1] == (first / "README.md").read_text().split(
        "\n", 1
    )[1]


def test_a_run_published_under_another_name_has_a_page_of_its_own(tmp_path):
    folder = published_folder(tmp_path, "judges")
    publish(run_of(tmp_path / "run", "the table"), folder)
    assert (
        (folder / "README.md")
        .read_text()
        .startswith("# Ten tuning runs on the logistic regression: the published run")
    )


def test_a_readme_without_the_lines_around_its_results_is_refused(tmp_path):
    readme, published = tmp_path / "README.md", published_folder(tmp_path)
    publish(run_of(tmp_path / "run", "the table"), published)
    readme.write_text(f"Before.\n{MARKS[0]}\nThe end is lost.\n")
    with pytest.raises(DataError, match="needs the lines"):
        show_results(readme, published)
    assert readme.read_text().endswith("lost.\n")
