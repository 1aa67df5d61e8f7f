"""What a job waits for before it works: no import that it has no use for."""

import subprocess
import sys

import pytest

HEAVY = (
    "arviz",
    "jax",
    "matplotlib",
    "numpyro",
    "optax",
    "pandas",
    "scipy.stats",
    "seaborn",
    "snakemake",
    "xarray",
)
"""A tenth of a second or more each, seconds on a slow machine."""

ALLOWED = {
    # Every job; the Snakefile.
    "sgtune.workflow": (),
    "sgtune.settings": (),
    "sgtune.artifacts": (),
    # Tables, figures.
    "sgtune.artifacts.make": (),
    "sgtune.artifacts.figures": ("matplotlib",),
    # Data.
    "sgtune.data.downloads": (),
    "sgtune.data.movielens": (),
    "sgtune.data.mnist": (),
    "sgtune.data.ood": (),
    # What loads a model.
    "sgtune.models": ("jax",),
    "sgtune.jobs": ("jax",),
    "sgtune.evaluation": ("jax",),
    "sgtune.tuning": ("jax",),
    "sgtune.stein_study": ("jax",),
    "sgtune.reference.curvature": ("jax",),
    "sgtune.reference.map": ("jax",),
}


@pytest.mark.parametrize("module", ALLOWED)
def test_a_job_imports_what_it_needs_and_nothing_else_that_is_heavy(module):
    program = f"import sys, {module}; print(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == set(ALLOWED[module])
