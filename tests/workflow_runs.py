"""The workflow's command line for the tests."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def snakemake(directory: Path, *arguments: str) -> list[str]:
    """The command that runs the workflow in ``directory``."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "2"]
    return [*command, "--directory", str(directory), *arguments]
