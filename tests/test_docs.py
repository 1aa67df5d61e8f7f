"""Every Python block in the documentation runs; the blocks of a page run one after the other."""

import re
from pathlib import Path

import numpy as np
import pytest
from workflow_runs import ROOT

from sgtune.study.publish import MAIN

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")])


def blocks_of(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.S | re.M)


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)]


@pytest.fixture
def registries():
    """Remove a page's additions to the registries of the package after its test."""
    from sgtune.samplers import SAMPLERS

    before = dict(SAMPLERS)
    yield
    SAMPLERS.clear()
    SAMPLERS.update(before)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page, "python")])
def test_python_of_a_page_runs_from_top_to_bottom(page, registries, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for number, block in enumerate(blocks_of(page, "python")):
        exec(compile(block, f"{page}, block {number + 1}", "exec"), names)
    printed = capsys.readouterr()
    assert not printed.err
    for shown in blocks_of(page, "text"):
        # The arm must agree exactly; means and sds agree up to the rounding of another processor.
        assert printed.out.splitlines()[0] == shown.splitlines()[0]
        np.testing.assert_allclose(numbers(printed.out), numbers(shown), rtol=0.05, atol=2e-4)


def test_pages_are_in_the_navigation_and_links_and_artifacts_exist():
    from sgtune.study.catalogue import FIGURES, STUDIES, TABLES

    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        if page.startswith("docs/"):
            assert f": {page.removeprefix('docs/')}" in navigation, f"{page} is not in mkdocs.yml"
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text):
            if "://" not in target:
                assert (Path(ROOT / page).parent / target).exists(), f"{page} links to {target}"
        for kind, study, name in re.findall(r"^\{\{ (table|figure) (\w+)/([\w-]+) \}\}$", text, re.M):
            tables, figures = (
                (STUDIES[study].tables, STUDIES[study].figures) if study != MAIN else (TABLES, FIGURES)
            )
            assert name in (tables if kind == "table" else figures), f"{page} shows {kind} {study}/{name}"
