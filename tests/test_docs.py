"""Every Python block in the documentation runs; the blocks of a page run one after the other."""

import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import matplotlib.pyplot
import numpy as np
import pytest
from config_files import ROOT

from sgtune.samplers import SAMPLERS
from sgtune.study.studies import find

PUBLIC = ("metrics", "samplers", "stein", "tuning")
"""Packages with public names of their own."""

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")])


ARTIFACT = r'^!?\[([^\]\n]*)\]\(([^)\s]+) "(table|figure|provenance) (\w+)(?:/([\w-]+))?"\)$'
"""The line of a published artifact, which docs/hooks.py replaces: its title, file, kind, study and name."""


def blocks_of(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.S | re.M)


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)]


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page, "python")])
def test_python_of_a_page_runs_from_top_to_bottom(page, by_steps, monkeypatch, tmp_path, capsys):
    if any("from flax import" in block for block in blocks_of(page, "python")):
        # `.ci/run` has it among other people's packages.
        pytest.importorskip("flax")
    monkeypatch.chdir(tmp_path)
    by_steps(1e-3)
    names = {"__name__": "__main__"}
    # A page may add samplers.
    with patch.dict(SAMPLERS):
        for number, block in enumerate(blocks_of(page, "python")):
            exec(compile(block, f"{page}, block {number + 1}", "exec"), names)
    matplotlib.pyplot.close("all")
    printed = capsys.readouterr()
    assert not printed.err
    for shown in blocks_of(page, "text"):
        # The arm must agree exactly; means and sds agree up to the rounding of another processor.
        assert printed.out.splitlines()[0] == shown.splitlines()[0]
        np.testing.assert_allclose(numbers(printed.out), numbers(shown), rtol=0.05, atol=2e-4)
    # The pictures in docs/pictures are those that the blocks save.
    for shown in re.findall(r"\]\(pictures/([\w-]+\.svg)\)", (ROOT / page).read_text("utf-8")):
        assert (tmp_path / shown).stat().st_size > 1_000


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_pages_are_in_the_navigation_and_links_and_artifacts_exist():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        if page.startswith("docs/"):
            assert f": {page.removeprefix('docs/')}" in navigation, f"{page} is not in mkdocs.yml"
        for target, heading in re.findall(r"\]\(([^)#\s]*)(?:#([\w-]+))?", text):
            if "://" not in target:
                linked = Path(ROOT / page).parent / target if target else ROOT / page
                assert linked.exists(), f"{page} links to {target}"
                assert not heading or heading in anchors_of(linked), f"{page} links to {target}#{heading}"
        shown = re.findall(ARTIFACT, text, re.M)
        assert len(shown) == len(re.findall(r' "(?:table|figure|provenance) [^"\n]*"\)', text)), (
            f"{page} has an artifact that has no line of its own"
        )
        for title, target, kind, study, name in shown:
            assert f"results/published/{study}/" in target
            if kind == "provenance":
                continue
            assert find(name).form == kind
            where = f"tables/{name}.csv" if kind == "table" else f"figures/{name}.svg"
            assert title.removeprefix("Table: ") == find(name).about.title
            assert target.endswith(f"/published/{study}/{where}")


def homes_of(package: str, name: str) -> list[str]:
    """The modules of sgtune that list this object of ``package`` in their ``__all__``."""
    thing = getattr(import_module(package), name)
    modules = [module for path, module in list(sys.modules.items()) if path.split(".")[0] == "sgtune"]
    return [
        module.__name__
        for module in modules
        if name in getattr(module, "__all__", ()) and getattr(module, name, None) is thing
    ]


@pytest.mark.parametrize("package", ["sgtune", *(f"sgtune.{name}" for name in PUBLIC)])
def test_api_pages_show_every_public_name(package):
    pages = "\n".join(path.read_text("utf-8") for path in ROOT.glob("docs/api/*.md"))
    shown, missing = set(re.findall(r"^::: ([\w.]+)$", pages, re.M)), set()
    for name in import_module(package).__all__:
        thing = getattr(import_module(package), name)
        if isinstance(thing, ModuleType):
            found = any(f"{one}.".startswith(f"{thing.__name__}.") for one in shown)
        else:
            found = any({home, f"{home}.{name}"} & shown for home in homes_of(package, name))
        missing |= set() if found else {name}
    assert not missing, f"docs/api does not show these names of {package}: {sorted(missing)}"
