"""A job imports only the modules that it needs."""

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

STUDY = "sgtune.study"
HEAVY = [*("arviz", "jax", "matplotlib", "numpyro", "optax", "pandas"), *("pydantic", "scipy", "seaborn")]
HEAVY += ["snakemake", "xarray"]
"""Modules that take at least a tenth of a second to import, and seconds on a slow machine."""


def modules_of(package: str, *, of: str = "", without: str = "no such module") -> list[str]:
    names = [module.name for module in pkgutil.iter_modules(import_module(f"{STUDY}.{package}").__path__)]
    return [f"{package}.{name}" for name in names if of in name and without not in name]


OF_SNAKEFILE = (
    "studies",
    "catalogue",
    "config.sections",
    "pipeline.job",
    "pipeline.parts",
    "posteriors.store",
)
OTHERS = ("ccadl", "adam_mcmc")
SETS = {
    "snakefile": ([*OF_SNAKEFILE, *(f"{paper}.artifacts" for paper in ("mamba", *OTHERS))], set()),
    "tables": (
        [*modules_of("report", without="style"), *modules_of("mamba", without="figures")]
        + [f"{paper}.tables" for paper in OTHERS],
        {"pandas", "scipy"},
    ),
    "figures": (
        [*modules_of("mamba", of="figures"), *(f"{paper}.figures" for paper in OTHERS)],
        {"matplotlib", "pandas", "scipy", "seaborn"},
    ),
    "jobs": (
        ["posteriors.bnn", *(f"experiments.{name}" for name in ("tune", "evaluate", "screen"))],
        {"jax"},
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_a_job_imports_what_it_needs_and_nothing_else_that_is_heavy(name):
    modules, allowed = [f"{STUDY}.{module}" for module in SETS[name][0]], SETS[name][1]
    program = f"import sys, {', '.join(modules)}; print(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert set(done.stdout.split()) <= allowed
