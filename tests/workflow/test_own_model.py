"""A model of one's own from its file to tables and the report, as `examples/my_model.yaml` has it; and what a bad or a
changed file does."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from config_files import ROOT, snakemake

pytestmark = pytest.mark.slow

SETTINGS = ("--configfile", "examples/my_model.yaml")
RUN = "results/my_model"


def workflow(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    return snakemake(folder, *arguments, cwd=folder)


def jobs_of(done: subprocess.CompletedProcess) -> set[str]:
    """The rules of the jobs that Snakemake names."""
    return set(re.findall(r"^(?:local)?rule (\w+):", done.stdout + done.stderr, re.M))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with the configuration and the example, in which the example has run."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "config").symlink_to(ROOT / "config")
    (folder / "examples").mkdir()
    for name in ("my_model.py", "my_model.yaml"):
        shutil.copy(ROOT / "examples" / name, folder / "examples")
    done = workflow(folder, *SETTINGS)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return folder


def table(folder: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(folder / RUN / f"mamba/tables/{name}.csv")


def test_the_tables_say_how_right_the_chains_are(folder):
    found = table(folder, "own_check").pivot(index="detail", columns="metric", values="value")
    assert set(found.index) == {"log_sd", *(f"slopes[{i}]" for i in range(11))}
    # Against 1,000 draws of NUTS, in the units of the file: four standard errors of a mean, for 100 effective draws.
    away = (found["check_mean"] - found["check_nuts_mean"]) / found["check_nuts_sd"]
    assert np.abs(away).max() < 0.4
    np.testing.assert_allclose(found["check_sd"] / found["check_nuts_sd"], 1, atol=0.35)
    np.testing.assert_allclose(found["check_sd_ratio"], 1, atol=0.35)
    errors = table(folder, "own_errors").set_index(["tuner", "metric"])["value"]
    # Of one column's sds 100 % would be a chain that does not move.
    assert errors["mamba", "xi_white_x100"] < 50
    # The sd of the test set's targets is 77.
    assert errors["grid", "rmse"] < 65
    assert set(table(folder, "own_choices")["tuner"]) == {"mamba", "theory", "grid"}
    assert set(table(folder, "headline")["tuner"]) >= {"mamba", "theory", "grid", "frozen"}


def test_a_file_that_changes_reruns_its_results_and_a_bad_one_starts_no_job(folder):
    assert not jobs_of(workflow(folder, *SETTINGS, "--dry-run"))
    path = folder / "examples/my_model.py"
    text = path.read_text(encoding="utf-8")
    try:
        path.write_text(f"{text}\n# Another file.\n", encoding="utf-8")
        jobs = jobs_of(workflow(folder, *SETTINGS, "--dry-run"))
        assert {"prepare_own", "find_map", "sample_nuts", "tune_sampler", "check_sampler"} <= jobs
        assert "make_table" in jobs
        path.write_text(text.replace("def model", "def modle"), encoding="utf-8")
        done = workflow(folder, *SETTINGS)
        lines = [line for line in done.stderr.splitlines() if "my_model.py" in line]
        assert done.returncode != 0
        assert lines == [
            "Error in the configuration: model: 'examples/my_model.py' is not allowed: it defines no function model()"
        ]
        assert not jobs_of(done)
    finally:
        path.write_text(text, encoding="utf-8")
