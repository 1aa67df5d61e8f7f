"""The scripts in examples run as they stand."""

import runpy
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from sgtune.mode.curvature import laplace_sd
from sgtune.samplers import SAMPLERS

EXAMPLES = Path(__file__).parents[1] / "examples"


def run_script(name: str, capsys: pytest.CaptureFixture, *needed: str) -> dict:
    """The names that a script defines."""
    for module in needed:
        pytest.importorskip(module)
    # A script may add samplers.
    with patch.dict(SAMPLERS):
        names = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    assert not capsys.readouterr().err
    return names


def test_every_script_is_run():
    """The workflow runs my_model, in `test_own_model`."""
    scripts = {path.stem for path in EXAMPLES.glob("*.py")}
    assert scripts == {"blackjax_kernel", "my_model", "numpyro_lkj", "numpyro_to_arviz"}


@pytest.mark.slow
def test_numpyro_to_arviz(capsys):
    # The slope behind the data is 0.5, and its posterior sd 0.022.
    draws = run_script("numpyro_to_arviz", capsys, "numpyro", "arviz")["run"].constrained()
    assert np.abs(draws["slope"].mean(axis=1) - 0.5).max() < 0.1
    np.testing.assert_allclose(draws["slope"].std(), 0.022, rtol=0.2)
    assert (draws["sd"] > 0).all()


@pytest.mark.slow
def test_numpyro_lkj(capsys):
    names = run_script("numpyro_lkj", capsys, "numpyro", "arviz")
    draws = names["run"].constrained()
    np.testing.assert_allclose(np.linalg.norm(draws["factor"], axis=-1), 1.0, rtol=1e-5)
    assert not names["run"].check().warnings


@pytest.mark.slow
def test_blackjax_kernel(capsys):
    names = run_script("blackjax_kernel", capsys, "blackjax")
    run, model = names["run"], names["model"]
    assert run[0].sampler == "blackjax-sgld-cv"
    # With 2,000 data the posterior is near its Laplace approximation.
    np.testing.assert_allclose(run.draws.std(axis=(0, 1)), laplace_sd(model), rtol=0.25)
