"""The requirements of a fresh clone: the commands, the pins, the licence."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from sgtune.study.studies import STUDIES

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIREMENTS = [
    Requirement(line)
    for line in PROJECT["dependencies"] + EXTRAS["study"] + EXTRAS["test"]
    if not line.startswith("sgtune")
]
MAIN_JOB = "python3 -m venv .venv && .venv/bin/pip install -e '.[study]' && .venv/bin/snakemake --cores all"
TESTS = "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest"


def pins(lines: list[str]) -> dict[str, str]:
    pairs = [line.split("==") for line in lines]
    assert all(len(pair) == 2 for pair in pairs)
    assert len({canonicalize_name(name) for name, _ in pairs}) == len(pairs)
    return {canonicalize_name(name): version for name, version in pairs}


def locked() -> dict[str, str]:
    lines = (ROOT / "envs/requirements.lock").read_text().splitlines()
    return pins([line for line in lines if not line.startswith("#")])


def conda() -> tuple[str, dict[str, str]]:
    """The Python pin and the pip pins of the conda environment."""
    environment = yaml.safe_load((ROOT / "envs/sgtune.yaml").read_text())
    python, pip, section = environment["dependencies"]
    assert pip == "pip"
    return python.removeprefix("python="), pins(section["pip"])


def test_readme_opens_with_the_two_commands():
    readme = (ROOT / "README.md").read_text()
    commands = re.findall(r"python3 -m venv .*", readme)
    assert [command.strip() for command in commands[:2]] == [MAIN_JOB, TESTS]


def test_ci_runs_the_test_command_and_every_check():
    path = ROOT / ".ci/run"
    script = path.read_text()
    assert os.access(path, os.X_OK)
    assert script.startswith("#!/usr/bin/env bash\n")
    assert TESTS in script.splitlines()
    for check in ("ruff check", "ruff format --check", "snakefmt --check", "snakemake --lint"):
        assert f".venv/bin/{check}" in script
    # With --quiet, mkdocs does not count the warnings that --strict makes errors.
    (site,) = [line for line in script.splitlines() if "mkdocs build" in line]
    assert "--strict" in site
    assert "--quiet" not in site


def test_lock_and_conda_environment_agree():
    python, conda_pins = conda()
    assert conda_pins == locked()
    assert Version(python) in SpecifierSet(PROJECT["requires-python"])


def test_lock_holds_only_exact_pins_and_no_address():
    text = (ROOT / "envs/requirements.lock").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    assert "://" not in text


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_lock_satisfies_every_bound(requirement):
    assert requirement.specifier, "a dependency without a lower bound"
    assert any(bound.operator == ">=" for bound in requirement.specifier)
    assert Version(locked()[canonicalize_name(requirement.name)]) in requirement.specifier


def test_licence_and_citation():
    licence = (ROOT / "LICENSE").read_text()
    assert "Apache License" in licence.splitlines()[1]
    assert "END OF TERMS AND CONDITIONS" in licence
    assert PROJECT["license"] == "Apache-2.0"
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["license"], citation["version"]) == (PROJECT["license"], PROJECT["version"])
    assert citation["references"][0]["doi"] == "10.1007/s11222-023-10233-3"
    # The paper of each study.
    cited = " ".join(reference["title"].lower() for reference in citation["references"])
    assert all(name in cited for name in ("tuning", "covariance-controlled", "adammcmc"))
    assert len(citation["references"]) == len(STUDIES)


def test_runs_are_ignored_by_git_and_published_tables_are_not():
    def ignored(path: str) -> bool:
        return subprocess.run(["git", "check-ignore", "-q", path], cwd=ROOT, check=False).returncode == 0

    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    assert ignored("results/quick/mamba/tables/table1.csv")
    assert ignored(".venv/bin/python")
    assert not ignored("results/published/tuning/tables/table1.csv")


@pytest.mark.parametrize("profile", ["default", "slurm"])
def test_profiles_give_a_reason_for_every_value(profile):
    text = (ROOT / f"profiles/{profile}/profile.yaml").read_text()
    values = yaml.safe_load(text)
    assert values
    for key in values:
        assert re.search(rf"^ *#.*\n(?:[\w-]+:.*\n)*{key}:", text, flags=re.M), key


def test_slurm_profile_gives_timed_jobs_a_node_of_their_own():
    """`machine=1000` marks a timed rule; on a cluster nothing else keeps its neighbours away."""
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--executor", "dryrun", "--jobs", "2"]
    # By the wall clock: where a run uses a cost table, evaluation does not need its own node.
    command += ["--workflow-profile", "profiles/slurm", "--configfile", "config/paper.yaml"]
    command += ["--config", "run=never-made"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    resources = re.findall(r"^ +resources: (.*)$", result.stdout, flags=re.M)
    timed = [line for line in resources if "machine=1000" in line]
    assert timed
    for line in resources:
        assert ("machine=1000" in line) == ("--exclusive" in line), line
