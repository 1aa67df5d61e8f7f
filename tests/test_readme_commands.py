"""Every Snakemake line of README and docs works as typed: on the tiny study, in a folder laid out like a clone.

This is also the run from end to end, through every rule, whose report `.ci/run` opens in a browser. Lines that take
hours or write into a tracked folder are dry runs.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from config_files import LONGEST, ROOT, changed, raw_config

from sgtune.sampling.budget import CostTable
from sgtune.study.config.sections import settings_of
from sgtune.study.pipeline.plan import shapes_of

pytestmark = pytest.mark.optimised

RUNS = ("paper", "small_pmf", "small_pmf_2", "posteriors")
"""Runs whose configurations the commands name; here they differ from the tiny study only in their names."""

LONG = (*(f"{run}.yaml" for run in RUNS), "my_model.yaml", "publish", "--forcerun", "compare")
"""Command lines with one of these words are dry runs, since they take hours, write into a tracked folder, need one, or
make a whole study again (`test_workflow` and `test_own_model` in `tests/workflow` do so)."""

OWN = """
models: [own]
samplers: [sgld-cv]
tuners: [mamba, grid]
reference: {nuts: false}
calibration: {table: null, seconds: 0.01}
"""
"""In place of config/own.yaml, beside the budgets of the tiny study."""

SIZES = {"logistic": (4_000, 3, 1e-4), "pmf": (320, 1_720, 1e-3), "bnn": (300, 3_985, 5e-3)}
"""N, D and the seconds of a step, by which seconds of the tiny study become steps: few, of large models."""

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CLUSTER = "profiles/slurm"
"""The cluster's executor is no dependency of the package; `test_packaging` tests the profile."""


def commands(pages: Sequence[Path] = PAGES) -> list[list[str]]:
    """The command lines of ``pages`` that call Snakemake, as words, without venv and pip, which CI tests."""
    typed = []
    for page in pages:
        text = page.read_text("utf-8")
        blocks = re.findall(r"```bash\n(.*?)```", text, re.S)
        lines = [line.partition("#")[0] for block in blocks for line in block.splitlines()]
        typed += [line.rpartition("&&")[2].strip().removeprefix(".venv/bin/") for line in lines]
        typed += re.findall(r"`(snakemake [^`{]*)`", re.sub(r"```.*?```", "", text, flags=re.S))
    return [shlex.split(line) for line in dict.fromkeys(typed) if line.startswith("snakemake ")]


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """A folder with the layout of a clone, whose default run is the tiny study."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("Snakefile", "workflow", "profiles", "envs", "src"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "config").mkdir()
    # As the default run, this one goes by a cost table, so that only calibrations are timed and run alone.
    costs = {}
    for model, (n_data, dimension, seconds) in SIZES.items():
        shapes = shapes_of(settings_of(raw_config("tiny"), "cost", model), n_data)
        rows = CostTable(dict.fromkeys(shapes, seconds)).to_rows()
        costs[model] = {"n_data": n_data, "dimension": dimension, "rows": rows}
    (folder / "config/costs.json").write_text(json.dumps({"models": costs}))
    config = changed(raw_config("tiny"), run="quick", calibration__table="config/costs.json")
    (folder / "config/config.yaml").write_text(yaml.safe_dump(config))
    for name in RUNS:
        (folder / f"config/{name}.yaml").write_text(f"run: {name}\n")
    (folder / "config/own.yaml").write_text(OWN)
    shutil.copy(ROOT / "README.md", folder)
    (folder / "examples").symlink_to(ROOT / "examples")
    shutil.copy(ROOT / "examples/my_model.py", folder)
    return folder


@pytest.mark.end_to_end
def test_every_command_works_as_typed(clone, capfd):
    """Commands run in the order of the pages."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for words in commands():
        if CLUSTER in words:
            continue
        dry = ["--dry-run"] if any(name in " ".join(words) for name in LONG) else []
        began = time.monotonic()
        done = subprocess.run(
            [*words, *dry], cwd=clone, env=environment, capture_output=True, text=True, timeout=LONGEST
        )
        with capfd.disabled():  # the test takes minutes
            print(f"{time.monotonic() - began:6.0f} s  {shlex.join([*words, *dry])}", flush=True)
        assert done.returncode == 0, f"{shlex.join(words)}:\n{(done.stdout + done.stderr)[-3000:]}"
    for name in ("report.zip", "studies.zip"):
        assert (clone / name).stat().st_size > 10_000
    assert (clone / "results/quick/mamba/tables/table1.html").is_file()
    assert not (clone / "results/downloads").exists(), "the data are simulated"
