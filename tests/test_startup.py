"""A job imports only the modules that it needs."""

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

HEAVY = [
    "arviz",
    "jax",
    "matplotlib",
    "numpyro",
    "optax",
    "pandas",
    "pydantic",
    "scipy",
    "seaborn",
    "snakemake",
    "xarray",
]
"""Modules that take at least a tenth of a second to import, and seconds on a slow machine."""


def modules_of(package: str, *, of: str = "", without: str = "no such module") -> list[str]:
    names = [f"{package}.{module.name}" for module in pkgutil.iter_modules(import_module(package).__path__)]
    return [name for name in names if of in name and without not in name]


STUDY = "sgtune.study"
PAPERS = ("mamba", "ccadl", "adam_mcmc")
SETS = {
    "snakefile": (
        [
            f"{STUDY}.studies",
            f"{STUDY}.catalogue",
            f"{STUDY}.config.sections",
            f"{STUDY}.pipeline.job",
            f"{STUDY}.pipeline.saved",
            f"{STUDY}.pipeline.parts",
            *(f"{STUDY}.{paper}.artifacts" for paper in PAPERS),
        ],
        set(),
    ),
    "tables": (
        [
            *modules_of(f"{STUDY}.report", without="style"),
            *modules_of(f"{STUDY}.mamba", without="figures"),
            *(f"{STUDY}.{paper}.tables" for paper in PAPERS[1:]),
        ],
        {"pandas", "scipy"},
    ),
    "figures": (
        [*modules_of(f"{STUDY}.mamba", of="figures"), *(f"{STUDY}.{paper}.figures" for paper in PAPERS[1:])],
        {"matplotlib", "pandas", "scipy", "seaborn"},
    ),
    "jobs": (
        [
            f"{STUDY}.posteriors.bnn",
            f"{STUDY}.experiments.tune",
            f"{STUDY}.experiments.evaluate",
            f"{STUDY}.experiments.screen",
            "sgtune.mode.find",
        ],
        {"jax"},
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_a_job_imports_what_it_needs_and_nothing_else_that_is_heavy(name):
    modules, allowed = SETS[name]
    program = f"import sys, {', '.join(modules)}; print(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert set(done.stdout.split()) <= allowed
