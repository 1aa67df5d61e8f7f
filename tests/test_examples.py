"""The scripts in examples run as they stand."""

import runpy
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs(script, capsys):
    pytest.importorskip("numpyro")
    pytest.importorskip("arviz")
    names = runpy.run_path(str(script))
    assert not capsys.readouterr().err
    # The slope behind the data is 0.5, and its posterior sd 0.022.
    draws = names["chains"][0].constrained()
    assert abs(draws["slope"].mean() - 0.5) < 0.1
    assert (draws["sd"] > 0).all()
