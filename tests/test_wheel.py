"""Declared and installed dependencies of the library alone, and with the study."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import sgtune

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
UNSEEN = {
    "jaxlib": "JAX's compiled half",
    "h5netcdf": "ArviZ writes NetCDF with it",
    "pytest-xdist": "a plugin of pytest",
    "ruff": "a command",
    "setuptools": "builds the wheel",
    "snakefmt": "a command",
    "beartype": "named in pytest's options",
}
"""Dependencies that are declared but not imported by name, and why."""


def declared(*extras: str) -> set[str]:
    lines = [*PROJECT["dependencies"]]
    for extra in extras:
        lines += PROJECT["optional-dependencies"][extra]
    return {canonicalize_name(Requirement(line).name) for line in lines} - {"sgtune"}


def imported(*folders: Path, without: str = "") -> set[str]:
    """The distributions that the modules in ``folders`` import."""
    names = set()
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        if without and without in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module)
    own = {path.stem for name in ("tests", "benchmarks") for path in (ROOT / name).rglob("*.py")} | {"sgtune"}
    tops = {name.partition(".")[0] for name in names} - own - set(sys.stdlib_module_names)
    known = packages_distributions()
    return {canonicalize_name(known[top][0]) for top in tops}


def test_the_library_declares_what_it_imports():
    assert imported(ROOT / "src/sgtune", without="study") == declared() - set(UNSEEN)


def test_the_study_and_the_tests_declare_what_they_import():
    study = imported(ROOT / "src/sgtune", ROOT / "workflow")
    assert study <= declared("study")
    assert declared("study") - study <= set(UNSEEN)
    tests = imported(ROOT / "tests", ROOT / "benchmarks")
    assert tests <= declared("study", "test")
    assert declared("test") - tests - study <= set(UNSEEN)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of the package, built without the network."""
    folder, source = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--quiet",
    ]
    built = ["--wheel-dir", str(folder), str(source)]
    subprocess.run([*command, *built], check=True, capture_output=True, cwd=folder, timeout=300)
    (path,) = folder.glob("*.whl")
    return path


def test_a_wheel_has_every_module_and_says_that_it_is_typed(wheel):
    source = Path(sgtune.__file__).parent
    modules = {f"sgtune/{path.relative_to(source)}" for path in source.rglob("*.py")}
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("sgtune/")}
    assert names == modules | {"sgtune/py.typed"}


LIBRARY = """
import sys, importlib.abc
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {refused}:
            raise ModuleNotFoundError("not installed: " + name)
sys.meta_path.insert(0, Refuse())
import jax.numpy as jnp, numpy as np, sgtune
assert sgtune.__file__.startswith({target!r}), sgtune.__file__
model = sgtune.define_model(
    "gaussian",
    log_prior=lambda position: -0.5 * position @ position,
    log_likelihood=lambda position, batch: -0.5 * jnp.sum((batch - position) ** 2, axis=-1),
    data=np.random.default_rng(0).normal(size=(1_000, 2)),
    init=lambda key: jnp.zeros(2),
)
result = sgtune.tune(model, "sgld-cv", budget=sgtune.Budget(steps=60))
chain = sgtune.sample(model, "sgld-cv", **result.best, budget=sgtune.Budget(steps=50))
print(len(result.rungs), sgtune.stein.ksd(chain.positions, chain.scores(model)))
from sgtune.study import load_model
"""


def as_a_user() -> dict[str, str]:
    """The environment without the package of this checkout and without what the tests set for JAX and XLA."""
    of_tests = ("PYTHONPATH", "XLA_FLAGS", "PJRT_NPROC")
    return {
        name: value
        for name, value in os.environ.items()
        if name not in of_tests and not name.startswith("JAX_")
    }


def test_the_library_works_without_what_the_study_needs(wheel, tmp_path):
    """The library imports none of the study's dependencies, even where they are installed."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    known = packages_distributions()
    refused = {
        top
        for top, names in known.items()
        if {canonicalize_name(name) for name in names} & (declared("study") - declared())
    }
    assert {"snakemake", "numpyro", "seaborn", "yaml"} <= refused
    done = subprocess.run(
        [sys.executable, "-c", LIBRARY.format(refused=refused, target=str(tmp_path))],
        capture_output=True,
        text=True,
        env=as_a_user() | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[1]) > 0


def test_the_workflow_runs_with_the_package_as_a_wheel(wheel, tmp_path):
    """In a clone, with the package installed elsewhere, the workflow finds its schema, captions and scripts, and its
    jobs compile as a user's do."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--configfile", "tests/tiny.yaml"]
    command += ["--config", "run=wheel", "--", "results/wheel/reference/logistic/map.json"]
    environment = as_a_user() | {"PYTHONPATH": str(tmp_path)}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        assert (ROOT / "results/wheel/reference/logistic/map.json").is_file()
    finally:
        for folder in ("results/wheel", "results/saved/wheel"):
            shutil.rmtree(ROOT / folder, ignore_errors=True)


@pytest.mark.network
def test_a_wheel_works_in_an_empty_environment(wheel, tmp_path):
    """The library alone does not install Snakemake; with the study added, a dry run plans the whole workflow."""
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env/bin/python")
    environment = as_a_user()

    def run(*command: str, cwd: Path = tmp_path) -> str:
        done = subprocess.run(
            [python, *command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=1_800
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    for extra in ("", "[study]"):
        run("-m", "pip", "install", "--quiet", f"{wheel}{extra}")
        run("-c", LIBRARY.format(refused=set(), target=str(tmp_path)))
        listed = run("-m", "pip", "list")
        assert bool(re.search(r"^snakemake ", listed, flags=re.M)) == bool(extra)
    plan = run("-m", "snakemake", "--dry-run", "--cores", "1", "--config", "run=wheel", cwd=ROOT)
    assert "tune_sampler" in plan
