"""A fresh clone and a wheel: the commands, the pins, the licence, and what is declared, imported and installed."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from functools import partial
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import sgtune
from sgtune.study.studies import STUDIES

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIREMENTS = [
    Requirement(line)
    for line in PROJECT["dependencies"] + EXTRAS["study"] + EXTRAS["test"]
    if not line.startswith("sgtune")
]
MAIN_JOB = "python3 -m venv .venv && .venv/bin/pip install -e '.[study]' && .venv/bin/snakemake --cores all"
PYTEST = ("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider")
TESTS = "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest"


def pins(lines: list[str]) -> dict[str, str]:
    """Exact pins, none of them an address, of which no distribution has two."""
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    found = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    assert len(found) == len(lines)
    return found


def locked() -> dict[str, str]:
    lines = (ROOT / "envs/requirements.lock").read_text("utf-8").splitlines()
    return pins([line for line in lines if not line.startswith("#")])


def test_readme_opens_with_the_two_commands_and_ci_runs_the_second():
    readme = (ROOT / "README.md").read_text("utf-8")
    commands = re.findall(r"python3 -m venv .*", readme)
    assert [command.strip() for command in commands[:2]] == [MAIN_JOB, TESTS]
    assert TESTS in (ROOT / ".ci/run").read_text("utf-8").splitlines()


def test_lock_and_conda_environment_agree():
    environment = yaml.safe_load((ROOT / "envs/sgtune.yaml").read_text("utf-8"))
    python, pip, section = environment["dependencies"]
    assert pip == "pip"
    assert pins(section["pip"]) == locked()
    assert Version(python.removeprefix("python=")) in SpecifierSet(PROJECT["requires-python"])


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_lock_satisfies_every_bound(requirement):
    assert requirement.specifier, "a dependency without a lower bound"
    assert any(bound.operator == ">=" for bound in requirement.specifier)
    assert Version(locked()[canonicalize_name(requirement.name)]) in requirement.specifier


@pytest.mark.parametrize(("clock", "by_hand"), [("calibrated", set()), ("wall", {"evaluate_sampler"})])
def test_slurm_profile_gives_timed_jobs_a_node_of_their_own(clock, by_hand):
    """`machine=1000` marks a timed rule, of any study; on a cluster nothing else keeps its neighbours away. With a cost
    table evaluation is not timed; by the wall clock a comment in the profile says what to add."""
    options = "--dry-run --executor dryrun --jobs 2 --workflow-profile profiles/slurm"
    options += " --configfile config/paper.yaml --config run=never-made"
    evaluation = f"evaluation={{clock: {clock}}}"
    command = (sys.executable, "-m", "snakemake", *STUDIES, *options.split(), evaluation)
    plan = succeed(*command, cwd=ROOT, PYTHONPATH=str(ROOT / "src"))
    jobs = re.findall(r"^(?:local)?rule (\w+):\n((?: .*\n)+)", plan, flags=re.M)
    timed = {rule for rule, job in jobs if "machine=1000" in job}
    assert timed >= {"calibrate_cost", "compare_clocks", "compare_preconditioned", "calibrate_adam_mcmc"}
    assert {rule for rule, job in jobs if ("machine=1000" in job) != ("--exclusive" in job)} == by_hand


def names_of(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in requirements} - {"sgtune"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of the package, built without the network."""
    folder, source = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    build = f"-m pip wheel --no-deps --no-build-isolation --no-index --quiet --wheel-dir {folder} {source}"
    succeed(sys.executable, *build.split(), cwd=folder)
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
grid = sgtune.tuning.Grid(log10_step_sizes=(-3, -4), batch_fractions=(0.1,))
tuner = sgtune.tuning.Halving(grid=grid)
result = sgtune.tune(model, "sgld-cv", tuner=tuner, budget=sgtune.Budget(steps=60))
chain = sgtune.sample(model, "sgld-cv", **result.best, budget=sgtune.Budget(steps=50))
print(len(result.rungs), sgtune.stein.ksd(chain.positions, chain.scores(model)))
from sgtune.study import load_model
"""


def succeed(*command: str, cwd: Path, **environment: str) -> str:
    """What Python printed for a user: without the package of this checkout and what the tests set for JAX and XLA."""
    of_tests = ("PYTHONPATH", "XLA_FLAGS", "PJRT_NPROC")
    own = {k: v for k, v in os.environ.items() if k not in of_tests and not k.startswith("JAX_")}
    done = subprocess.run(
        [*command], cwd=cwd, env=own | environment, capture_output=True, text=True, timeout=3_600, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return done.stdout


def test_the_library_works_without_what_the_study_needs(wheel, tmp_path):
    """The library imports none of the study's dependencies, even where they are installed."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    further = names_of(EXTRAS["study"]) - names_of(PROJECT["dependencies"])
    refused = {top for top, names in packages_distributions().items() if names_of(names) & further}
    assert {"snakemake", "numpyro", "seaborn", "yaml"} <= refused
    code = LIBRARY.format(refused=refused, target=str(tmp_path))
    printed = succeed(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert float(printed.split()[1]) > 0


@pytest.mark.network
def test_a_wheel_works_in_an_empty_environment(wheel, tmp_path):
    """The library alone does not install Snakemake; with the study added, a dry run plans the whole workflow."""
    venv.create(tmp_path / "env", with_pip=True)
    run = partial(succeed, str(tmp_path / "env/bin/python"))
    for extra in ("", "[study]"):
        run("-m", "pip", "install", "--quiet", f"{wheel}{extra}", cwd=tmp_path)
        run("-c", LIBRARY.format(refused=set(), target=str(tmp_path)), cwd=tmp_path)
        listed = run("-m", "pip", "list", cwd=tmp_path)
        assert bool(re.search(r"^snakemake ", listed, flags=re.M)) == bool(extra)
    plan = run("-m", "snakemake", "--dry-run", "--cores", "1", "--config", "run=wheel", cwd=ROOT)
    assert "tune_sampler" in plan


@pytest.mark.network
@pytest.mark.parametrize("python", ["python3.12", "python3.13"])
def test_chains_and_their_draws_in_arviz_of_today(wheel, tmp_path, python):
    """The tests of chains, and of what goes to and comes from ArviZ and NumPyro, with the newest versions: ArviZ is at
    1 or above from Python 3.12 on, where a run is an `xarray.DataTree`."""
    # A command of this name may also be one that says which versions it lacks.
    if shutil.which(python) is None or subprocess.run([python, "-c", ""], capture_output=True).returncode:
        pytest.skip(f"{python} is not installed")
    succeed(python, "-m", "venv", str(tmp_path / "env"), cwd=tmp_path)
    run = partial(succeed, str(tmp_path / "env/bin/python"), cwd=ROOT)
    needed = {"beartype", "h5netcdf", "hypothesis", "pytest", "pytest-xdist"}
    tools = [str(each) for each in REQUIREMENTS if canonicalize_name(each.name) in needed]
    # The first ArviZ brought a package that writes NetCDF, and h5netcdf brought h5py; today's do not.
    run("-m", "pip", "install", "--quiet", f"{wheel}[arviz,numpyro,plots]", "h5py", *tools)
    run("-c", "import arviz; assert int(arviz.__version__.partition('.')[0]) >= 1")
    files = [f"tests/bridges/test_{name}.py" for name in ("arviz_trees", "numpyro_models")]
    files += ["tests/samplers/test_samplers.py", "tests/sampling/test_chain.py"]
    printed = run(*PYTEST, "-rs", *files)
    assert "test_arviz_trees" not in printed, "not skipped"


@pytest.mark.network
def test_models_of_the_oldest_numpyro_that_is_allowed(tmp_path):
    """Their bridge reads NumPyro's messages, of which no version promises the next. The lock's is the newest."""
    (oldest,) = {str(each.specifier) for each in REQUIREMENTS if each.name == "numpyro"}
    oldest = f"numpyro{oldest.replace('>=', '==')}"
    install = f"-m pip install --quiet --no-deps --target {tmp_path} {oldest}"
    succeed(sys.executable, *install.split(), cwd=tmp_path)
    both = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
    run = partial(succeed, sys.executable, cwd=ROOT, PYTHONPATH=both)
    run("-c", f"from numpyro import __version__ as v; assert '{oldest}' in f'numpyro=={{v}}'")
    assert re.search(r"\d+ passed", run(*PYTEST, "tests/bridges/test_numpyro_models.py"))
