"""Finished pieces of an unfinished job are kept, so that a killed job loses only its current piece."""

import hashlib
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import sgtune
from sgtune.study.config.sections import fingerprint
from sgtune.support.errors import DataError
from sgtune.support.files import read_json, write_json

if TYPE_CHECKING:
    from sgtune.metrics import Reference
    from sgtune.model import Model
    from sgtune.sampling.budget import CostTable

Record = TypeVar("Record")


@cache
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
        folder: belongs to this one job; made when the first piece is kept. None: nothing is kept.
        report: called with a line for each piece that is reused, or made again because it depends on something else.
    """

    def __init__(self, folder: str | Path | None = None, report: Callable[[str], None] = lambda line: None):
        self.folder = None if folder is None else Path(folder)
        self.report = report

    def once(self, name: str, depends_on: object, make: Callable[[], Record]) -> Record:
        """The record of the piece ``name``: kept from a job that was interrupted, or made now, and kept.

        Args:
            depends_on: all that the record depends on besides ``name`` and this package's code: settings, checksums of
                inputs, the seed, as JSON values.
            make: its result is a mapping, or any other JSON value.
        """
        if self.folder is None:
            return make()
        own = fingerprint({"piece": name, "depends_on": depends_on, "code": code_digest()})
        path = self.folder / f"{re.sub(r'[^A-Za-z0-9.=-]+', '_', name)}.json"
        if path.is_file():
            with suppress(DataError, KeyError, TypeError):
                held = read_json(path)
                if held["fingerprint"] == own:
                    record = held["record"]
                    self.report(f"{name}: kept from an unfinished job")
                    return record
            self.report(f"{name}: made again: damaged, or of other settings, inputs or code")
        record = make()
        write_json(path, {"fingerprint": own, "record": record})
        return record

    def clear(self) -> None:
        """The job is done: delete its pieces, so that it starts from scratch if it is run again."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


class Task(NamedTuple):
    """A model, or a sampler on it, and what its job gives to an experiment.

    Attributes:
        grid: the axes of the arms, as the configuration has them.
        cost: converts seconds to steps; None: by the wall clock.
        reference: moments of the posterior; None if they are unknown.
        depends_on: what all pieces depend on besides the seed.
    """

    model: "Model"
    sampler: str = ""
    grid: Mapping[str, Sequence] = {}
    cost: "CostTable | None" = None
    reference: "Reference | None" = None
    seed: int = 0
    parts: Parts = Parts()
    depends_on: Mapping = {}

    @property
    def names(self) -> dict[str, str | int]:
        """The entries with which a record of the sampler begins."""
        return {"model": self.model.name, "sampler": self.sampler, "n_data": self.model.n_data}

    def once(self, name: str, make: Callable[[], Record], **more: object) -> Record:
        """The piece ``name`` of the job (`Parts.once`), which depends on ``more`` besides what all pieces depend on."""
        return self.parts.once(name, {**self.depends_on, "seed": self.seed, **more}, make)

    def report(self, line: str) -> None:
        """A line of progress, in the job's log."""
        self.parts.report(line)
