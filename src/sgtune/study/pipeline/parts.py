"""Finished pieces of an unfinished job are saved, so that a killed job loses only its current piece."""

import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import sgtune
from sgtune.support.errors import DataError
from sgtune.support.files import read_json, write_json

__all__ = ["Parts", "code_digest"]


def code_digest() -> str:
    """SHA-256, in hex, of this package's source: pieces from another version are not used."""
    digest = hashlib.sha256()
    root = Path(sgtune.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


class Parts:
    """A folder of one JSON file per finished piece, each under the fingerprint of all that it depends on.

    Args:
        folder: belongs to this one job; made when the first piece is kept.
        report: called with a line for each piece that is reused, or made again because it depends on something else.
    """

    def __init__(self, folder: str | Path, report: Callable[[str], None] = lambda line: None):
        self.folder = Path(folder)
        self.report = report

    def get(self, name: str, fingerprint: str) -> dict | None:
        """The record of the piece ``name`` from a job that was interrupted, or None."""
        path = self._path(name)
        if not path.is_file():
            return None
        try:
            held = read_json(path)
        except DataError:
            held = None
        whole = isinstance(held, dict) and isinstance(held.get("record"), dict)
        if not whole:
            self.report(f"{name}: kept from an unfinished job, but damaged: made again")
            return None
        if held.get("fingerprint") != fingerprint:
            self.report(
                f"{name}: kept from an unfinished job, but with other settings, inputs or code: made again"
            )
            return None
        self.report(f"{name}: kept from an unfinished job")
        return held["record"]

    def keep(self, name: str, fingerprint: str, record: dict) -> None:
        """Keep the record of a finished piece."""
        write_json(self._path(name), {"fingerprint": fingerprint, "record": record})

    def clear(self) -> None:
        """The job is done: delete its pieces, so that it starts from scratch if it is run again."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, name: str) -> Path:
        return self.folder / f"{re.sub(r'[^A-Za-z0-9.=-]+', '_', name)}.json"
