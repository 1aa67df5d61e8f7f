"""The repository's configuration files and published tables, and the workflow's command line."""

import subprocess
import sys
from copy import deepcopy
from functools import cache
from pathlib import Path

import pandas as pd
import yaml
from snakemake.utils import update_config

from sgtune.study.config.schema import json_schema
from sgtune.study.config.validate import validate_config

ROOT = Path(__file__).parent.parent
SCHEMA = json_schema()
_NAMES = ("paper", "judges", "small_pmf", "horizons", "evidence", "posteriors")
OVERLAYS = {"quick": None, **{name: f"config/{name}.yaml" for name in _NAMES}, "tiny": "tests/tiny.yaml"}


@cache
def _read(path: str) -> dict:
    return yaml.safe_load((ROOT / path).read_text("utf-8"))


def page(path: str) -> str:
    """The text of a page, each line break a space."""
    return " ".join((ROOT / path).read_text("utf-8").split())


def own_values(run: str) -> dict:
    """What a run's own file says."""
    return deepcopy(_read(OVERLAYS[run])) if OVERLAYS[run] else {}


def raw_config(run: str) -> dict:
    """The configuration of a run, merged from its files."""
    config = deepcopy(_read("config/config.yaml"))
    update_config(config, own_values(run))
    return config


def changed(config: dict, **changes) -> dict:
    """``config`` with ``section__key=value`` set, in place."""
    for path, value in changes.items():
        *sections, key = path.split("__")
        part = config
        for section in sections:
            part = part.setdefault(section, {})
        part[key] = value
    return config


def config_with(**changes) -> dict:
    """The quick run with ``section__key=value`` set."""
    return changed(raw_config("quick"), **changes)


def valid(**changes) -> dict:
    """The paper's study with ``section__key=value`` set, validated."""
    config = changed(raw_config("paper") | {"run": "mine"}, **changes)
    validate_config(config)
    return config


def published(study: str, table: str, *index: str) -> pd.DataFrame:
    found = pd.read_csv(ROOT / f"results/published/{study}/tables/{table}.csv")
    return found.set_index([*index]).sort_index() if index else found


LONGEST = 3600
"""Seconds after which a command counts as one that hangs."""


def snakemake(directory: Path, *arguments: str, **options: object) -> subprocess.CompletedProcess:
    """The finished command that runs the workflow in ``directory``."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "2"]
    command += ["--directory", str(directory), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, **options)
