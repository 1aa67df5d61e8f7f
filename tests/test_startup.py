"""A job imports only the modules that it needs."""

import subprocess
import sys

import pytest
from artifact_records import make_files, write_files

HEAVY = (
    "arviz",
    "jax",
    "matplotlib",
    "numpyro",
    "optax",
    "pandas",
    "scipy",
    "seaborn",
    "snakemake",
    "xarray",
)
"""Modules that take at least a tenth of a second to import, and seconds on a slow machine."""

FIGURE = ("matplotlib", "pandas", "scipy", "seaborn")
"""Seaborn imports the other three."""

ALLOWED = {
    # Every job; the Snakefile.
    "sgtune.study.pipeline.job": (),
    "sgtune.study.config.sections": (),
    "sgtune.study.studies": (),
    "sgtune.study.pipeline.saved": (),
    # Tables, figures.
    "sgtune.study.mamba.figures": FIGURE,
    "sgtune.study.mamba.regret_figures": FIGURE,
    # Of further studies.
    "sgtune.study.ccadl.settings": (),
    "sgtune.study.ccadl.tables": ("pandas",),
    "sgtune.study.ccadl.figures": FIGURE,
    "sgtune.study.adam_mcmc.settings": (),
    "sgtune.study.adam_mcmc.tables": ("pandas", "scipy"),
    "sgtune.study.adam_mcmc.figures": FIGURE,
    # Data.
    "sgtune.study.posteriors.data_sets": (),
    "sgtune.study.posteriors.downloads": (),
    # Jobs that load a model.
    "sgtune.study.posteriors.bnn": ("jax",),
    "sgtune.study.experiments.tune": ("jax",),
    "sgtune.study.experiments.evaluate": ("jax",),
    "sgtune.tuning": ("jax",),
    "sgtune.study.experiments.discrepancies": ("jax",),
    "sgtune.mode.curvature": ("jax",),
    "sgtune.mode.find": ("jax",),
}


@pytest.mark.parametrize("module", ALLOWED)
def test_a_job_imports_what_it_needs_and_nothing_else_that_is_heavy(module):
    program = f"import sys, {module}; print(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == set(ALLOWED[module])


MAKE_TABLE = "make_table('ood', files, '', csv='t.csv', md='t.md', html='t.html')"
MAKE_FIGURE = "make_figure('ood_entropy', files, svg='f.svg', pdf='f.pdf')"


@pytest.mark.parametrize(
    ("call", "made", "allowed"),
    [(MAKE_TABLE, ("t.csv", "t.md", "t.html"), ("pandas",)), (MAKE_FIGURE, ("f.svg", "f.pdf"), FIGURE)],
    ids=["table", "figure"],
)
def test_making_a_table_or_a_figure_loads_no_more_than_it_needs(call, made, allowed, tmp_path):
    """The out-of-distribution table and figure, made as in the scripts, do not import JAX.

    The table does not import the plotting packages either, which take longer than pandas.
    """
    files = list(map(str, write_files(make_files(2, ("bnn",)), tmp_path)))
    program = (
        f"import sys; from sgtune.study.studies import make_figure, make_table; files = {files}; {call}; "
        f"print(*[name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    loaded = set(done.stdout.split())
    assert "jax" not in loaded
    assert loaded == set(allowed)
    assert all((tmp_path / name).stat().st_size > 0 for name in made)
