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

FIGURE = ("matplotlib", "pandas", "scipy.stats", "seaborn")
"""Seaborn loads the other three."""

ALLOWED = {
    # Every job; the Snakefile.
    "sgtune.study.job": (),
    "sgtune.study.config.sections": (),
    "sgtune.study.artifacts": (),
    # Tables, figures.
    "sgtune.study.artifacts.make": (),
    "sgtune.study.artifacts.figures": FIGURE,
    "sgtune.study.artifacts.regret_figures": FIGURE,
    "sgtune.study.artifacts.entropy_figure": FIGURE,
    # Data.
    "sgtune.study.data.downloads": (),
    "sgtune.study.data.movielens": (),
    "sgtune.study.data.mnist": (),
    "sgtune.study.data.ood_images": (),
    # What loads a model.
    "sgtune.study.models": ("jax",),
    "sgtune.study.per_sampler": ("jax",),
    "sgtune.study.evaluation": ("jax",),
    "sgtune.tuning": ("jax",),
    "sgtune.study.discrepancies": ("jax",),
    "sgtune.mode.curvature": ("jax",),
    "sgtune.mode.find": ("jax",),
}


@pytest.mark.parametrize("module", ALLOWED)
def test_a_job_imports_what_it_needs_and_nothing_else_that_is_heavy(module):
    program = f"import sys, {module}; print(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == set(ALLOWED[module])
