"""The scripts in examples run as they stand."""

import runpy
from pathlib import Path

import numpy as np
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
    draws = names["run"].constrained()
    assert np.abs(draws["slope"].mean(axis=1) - 0.5).max() < 0.1
    np.testing.assert_allclose(draws["slope"].std(), 0.022, rtol=0.2)
    assert (draws["sd"] > 0).all()
