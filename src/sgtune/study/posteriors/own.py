"""The model of a user's own file: what the workflow knows of it before any job, and the model itself.

A process of its own imports the file, so that the workflow, which reads the facts, does not wait for JAX, and nothing
that the file does can end it. The facts are kept beside the results, with the SHA-256 of the file and of all files that
it declares, and asked for again when one of these has changed.
"""

import contextlib
import importlib.util
import re
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING
from zlib import crc32

from sgtune.support.errors import DataError, InputError
from sgtune.support.files import file_sha256, read_json, write_json

if TYPE_CHECKING:
    from sgtune.model import Model

NAME = "own"
"""Of the model, whatever its file calls it."""

FACTS = Path("results", ".cache", "own")
"""Facts of files, for all runs."""

DECLARED = "DATA_FILES"
"""The list in the file of all other files that its model depends on, from the folder of the file."""

LONGEST = 300
"""Characters of an error that are printed."""


def run_named_after(file: str, taken: Iterable[str]) -> str:
    """The name of a run whose configuration gives it none: that of the file, without its suffix."""
    run = re.sub(r"[^a-z0-9_-]", "_", Path(file).stem.lower())
    why = ""
    if not re.match("[a-z]", run):
        why = "it does not begin with a letter"
    elif run in taken:
        why = "it has another meaning here"
    else:
        with contextlib.suppress(DataError, KeyError):
            theirs = next(iter(read_json(Path("results", run, "data", f"{NAME}.json"))["files"]))
            why = "" if Path(theirs) == Path(file) else f"results/{run} is of {theirs}"
    if why:
        raise InputError(f"model: {file!r} cannot name its run {run!r}: {why}; give the key run, too")
    return run


def facts_of(file: str) -> dict:
    """What the study must know of the model before it starts: ``files`` (the SHA-256 of the file, and of those that it
    declares, by path), ``n_data``, ``dimension``, ``task``, ``predicts`` (whether it has test data and predicts them),
    ``checksum`` (of its data), and ``batch_fractions`` (`sgtune.tuning.grid.default_fractions`).
    """
    path = Path(file)
    if not path.is_file() or path.suffix != ".py":
        what = "no Python file" if path.is_file() else "no file"
        raise _refused(file, f"there is {what} of this name; it must be a .py file that defines model()")
    # Other versions may draw other numbers from one seed, or have other data.
    packages = {found.name for folder in sys.path for found in Path(folder).glob("*.dist-info")}
    kept = FACTS / f"{file_sha256(path)}-{crc32(' '.join(sorted(packages)).encode()):08x}.json"
    with contextlib.suppress(DataError, KeyError, OSError):
        facts = read_json(kept)
        if Path(next(iter(facts["files"]))) == path and changed(facts["files"]) is None:
            return facts
    with TemporaryDirectory() as folder:
        target = Path(folder, "facts.json")
        command = [sys.executable, "-P", "-m", __name__, file, str(target)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if not target.is_file():
            last = (done.stderr.strip().splitlines() or ["no words"])[-1]
            raise _refused(file, f"the process that reads it ended with status {done.returncode}: {last}")
        facts = read_json(target)
    if "refused" in facts:
        raise _refused(file, facts["refused"])
    write_json(kept, facts)
    return facts


def changed(files: Mapping[str, str]) -> str | None:
    """The first of ``files`` (SHA-256 by path) that is missing or has another content; None if there is none."""
    return next(
        (path for path, sha256 in files.items() if not Path(path).is_file() or file_sha256(path) != sha256),
        None,
    )


def _refused(file: str, why: str) -> InputError:
    why = " ".join(why.split())
    why = why if len(why) <= LONGEST else f"{why[:LONGEST]}..."
    return InputError(f"model: {file!r} is not allowed: {why}")


def load(data_dir: str | Path) -> "Model":
    """The model of the file that ``data_dir/own.json`` names, with its mode in ``data_dir``."""
    facts = read_json(Path(data_dir, f"{NAME}.json"))
    if (other := changed(facts["files"])) is not None:
        raise DataError(f"{other}: changed or missing since this run began; start Snakemake again")
    file = next(iter(facts["files"]))
    model = read_model(file)[0]
    if model.checksum != facts["checksum"]:
        raise _refused(
            file,
            f"model() has other data than before: give its random numbers a seed, and name files in {DECLARED}",
        )
    return replace(model, data_dir=Path(data_dir))


def in_coordinates(model: "Model") -> "Model":
    """``model`` in the coordinates of its Laplace approximation, in which one grid of step sizes fits it."""
    import jax.numpy as jnp
    import numpy as np

    from sgtune.mode.coordinates import laplace_preconditioner, precondition

    system = laplace_preconditioner(model)
    seen = precondition(model, system)
    if model.predict is None:
        return seen
    centre, factor = (jnp.asarray(np.float32(array)) for array in (system.centre, system.factor))

    def predict(z, inputs):
        moved = factor @ z if factor.ndim == 2 else factor * z
        return model.predict(model.unravel(centre + moved), inputs)

    # Metrics of predictions take a model and its draws, here z.
    return replace(seen, predict=predict)


def read_model(file: str) -> tuple["Model", list[Path]]:
    """The model of ``file``, called `NAME`, and the files that it declares."""
    from sgtune.model import Model

    module = _attempt(file, "it cannot be imported", lambda: _imported(file))
    declared = getattr(module, DECLARED, [])
    if not isinstance(declared, list | tuple) or not all(isinstance(one, str | Path) for one in declared):
        raise _refused(file, f"{DECLARED} is {declared!r}; it must be a list of paths")
    paths = [Path(file).parent / one for one in declared]
    for path in paths:
        if not path.is_file():
            raise _refused(file, f"{DECLARED} has {str(path)!r}, which is no file")
    make = getattr(module, "model", None)
    if not callable(make):
        raise _refused(
            file, f"model is {make!r}" if hasattr(module, "model") else "it defines no function model()"
        )
    made = _attempt(file, "model() failed", make)
    if not isinstance(made, Model):
        kind = type(made).__name__
        raise _refused(
            file, f"model() returns {kind}; it must return what define_model or from_numpyro returns"
        )
    if made.preconditioner is not None:
        raise _refused(file, "model() returns a model with a preconditioner; return its original")
    return replace(made, name=NAME, functionals=None), paths


class _OfText(SourceFileLoader):
    """The text of a file, and no bytecode, which goes by its size and the second in which it was written."""

    def path_stats(self, path):
        raise OSError


def _imported(file: str) -> ModuleType:
    # Under a name of its own: a file may be called as a module that it imports.
    loader = _OfText("_sgtune_own_model", str(Path(file).resolve()))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    # Last, so that nothing beside the file hides a package.
    sys.path.append(str(Path(file).resolve().parent))
    spec.loader.exec_module(module)
    return module


def _attempt(file: str, what: str, call: Callable[[], object]) -> object:
    """``call()``; whatever it raises is an `InputError` with the line of the file."""
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        here = Path(file).resolve()
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == here]
        words = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        if isinstance(error, SyntaxError) and Path(error.filename or "").resolve() == here:
            lines, words = [error.lineno], f"{type(error).__name__}: {error.msg}"
        at = lines[-1] if lines else None
        raise _refused(file, f"{what}{f', line {at}' if at else ''}: {words}") from None


def _write_facts(file: str, target: str) -> None:
    """Write the facts of ``file``, or why it is refused, to the file ``target``."""
    try:
        model, paths = read_model(file)
    except InputError as problem:
        write_json(target, {"refused": str(problem).partition(" is not allowed: ")[2]})
        return
    from sgtune.metrics import can_predict
    from sgtune.tuning.grid import default_fractions

    write_json(
        target,
        {
            "files": {str(path): file_sha256(path) for path in (Path(file), *paths)},
            "n_data": model.n_data,
            "dimension": model.dimension,
            "task": model.task,
            "predicts": can_predict(model),
            "checksum": model.checksum,
            "batch_fractions": list(default_fractions(model.n_data)),
        },
    )


if __name__ == "__main__":
    _write_facts(*sys.argv[1:])
