"""Downloads: after any error of a source the next one is tried, no partial file is left, and nothing is executed."""

import bz2
import gzip
import hashlib
import io
import logging
import socket
import threading
import time
import zipfile
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sgtune.study.posteriors.downloads import DATA_SETS, DataSet, download, download_or_stand_in
from sgtune.study.posteriors.sources import DebianPackage, Site, Wheel, gunzip, zip_member
from sgtune.support.errors import DataError, InputError
from sgtune.support.files import read_json

CONTENT = b"196\t242\t3\t881250949\n" * 50
SUM = hashlib.sha256(CONTENT).hexdigest()


def zipped(member: str, content: bytes = CONTENT) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(member, content)
    return buffer.getvalue()


class Answers(BaseHTTPRequestHandler):
    """The path of a request determines the answer."""

    def do_GET(self):
        bodies = {"/zip": zipped("a/u.data"), "/gz": gzip.compress(CONTENT), "/changed": CONTENT + b"\n"}
        body = bodies.get(self.path, CONTENT)
        if self.path == "/plain" and "gzip" in self.headers["Accept-Encoding"]:
            body = gzip.compress(body)
        if self.path == "/slow":
            time.sleep(1)
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + 10 * (self.path == "/truncated")))
        if self.path == "/gz":
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        if self.path == "/stalls":
            self.wfile.write(body[:500])
            time.sleep(1)
            return
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def site(server: str, path: str, read=bytes) -> Site:
    return Site({"u.data": f"{server}/{path}"}, read, timeout=0.3)


def small_set(*sources) -> DataSet:
    return DataSet("small", {"u.data": SUM}, sources)


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def no_server() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.parametrize(
    ("path", "read"),
    [("plain", bytes), ("gz", gunzip), ("zip", partial(zip_member, member="a/u.data"))],
)
def test_a_site_gives_the_file_plain_gzipped_or_in_an_archive(server, tmp_path, caplog, path, read):
    caplog.set_level(logging.INFO, "sgtune")
    record = download(small_set(site(server, path, read)), tmp_path / "small")
    assert (tmp_path / "small/u.data").read_bytes() == CONTENT
    assert record == read_json(tmp_path / "small/source.json")
    assert record == {
        "name": "small",
        "source": "site 127.0.0.1",
        "sha256": {"u.data": SUM},
        "missing": None,
    }
    assert caplog.messages == ["small: from site 127.0.0.1"]


FAULTS = {
    "missing": (bytes, "HTTP 404"),
    "truncated": (bytes, r"truncated after \d+ bytes"),
    "slow": (bytes, r"no answer within 0\.3 s"),
    "stalls": (bytes, r"no answer within 0\.3 s"),
    "changed": (bytes, "wrong checksum of u.data: SHA-256 [0-9a-f]{12}..., expected " + SUM[:12]),
    "zip": (partial(zip_member, member="b/u.data"), "no member b/u.data"),
    "plain": (gunzip, "BadGzipFile"),
}


@pytest.mark.parametrize("path", FAULTS)
def test_a_fault_of_a_source_is_one_log_line_and_the_next_is_tried(server, tmp_path, caplog, path):
    caplog.set_level(logging.WARNING, "sgtune")
    read, reason = FAULTS[path]
    download(small_set(site(server, path, read), site(server, "good")), tmp_path)
    assert (tmp_path / "u.data").read_bytes() == CONTENT
    assert len(caplog.messages) == 1
    assert "\n" not in caplog.messages[0]
    caplog.clear()
    (tmp_path / "u.data").unlink()
    (tmp_path / "source.json").unlink()
    with pytest.raises(DataError, match=reason):
        download(small_set(site(server, path, read)), tmp_path)
    assert files_below(tmp_path) == []


def test_without_network_the_next_source_is_tried(server, tmp_path):
    download(small_set(site(no_server(), "good"), site(server, "good")), tmp_path)
    assert (tmp_path / "u.data").read_bytes() == CONTENT


def test_if_all_fail_the_error_lists_each_source_and_why(server, tmp_path):
    (tmp_path / "mirror").mkdir()
    package = Wheel("no_such_package==9.9", SUM, "u.data", lambda content: {"u.data": content}, timeout=0.001)
    unreachable = site(no_server(), "good")
    with pytest.raises(DataError) as caught:
        download(
            small_set(site(server, "missing"), unreachable, package),
            tmp_path / "to",
            mirror=tmp_path / "mirror",
        )
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith("small: no source has it: site 127.0.0.1: HTTP 404")
    places = [
        line.index(words)
        for words in (
            "HTTP 404",
            "refused",
            "wheel no_such_package==9.9: ",
            "did not end within 0.001 s",
            "; mirror ",
        )
    ]
    assert places == sorted(places)
    assert not (tmp_path / "to").exists()


def test_every_set_is_requested_from_its_site_first_and_then_from_packages():
    for data_set in DATA_SETS.values():
        kinds = [type(source) for source in data_set.sources]
        assert kinds[0] is Site
        assert all(kind in (Wheel, DebianPackage) for kind in kinds[1:])


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_a_mirror_has_the_file_packed_or_not_and_comes_last(server, tmp_path, suffix, pack):
    mirror = tmp_path / "mirror"
    (mirror / "small").mkdir(parents=True)
    content = pack(CONTENT)
    (mirror / "small" / f"u.data{suffix}").write_bytes(content)
    record = download(small_set(site(server, "missing")), tmp_path / "to", mirror=mirror)
    assert record["source"] == f"mirror {mirror}"
    assert (tmp_path / "to/u.data").read_bytes() == CONTENT
    assert (
        download(small_set(site(server, "good")), tmp_path / "to", mirror=mirror)["source"]
        == "site 127.0.0.1"
    )
    (mirror / "small" / f"u.data{suffix}").write_bytes(content[:-30])
    with pytest.raises(DataError, match=f"mirror {mirror}: "):
        download(small_set(), tmp_path / "to2", mirror=mirror)


def test_a_mirror_that_does_not_exist_is_refused_before_any_source_is_asked(server, tmp_path):
    for fetch in (
        partial(download, small_set(site(server, "good")), tmp_path / "to"),
        partial(download_or_stand_in, small_set(), tmp_path / "to", {"u.data": b""}),
    ):
        with pytest.raises(
            InputError, match=r"data\.mirror: '.*nowhere' is not allowed.*existing folder"
        ) as e:
            fetch(mirror=tmp_path / "nowhere")
        assert not isinstance(e.value, DataError)
    assert files_below(tmp_path) == []


def test_an_unavailable_optional_set_gets_a_file_without_data_and_the_reason(server, tmp_path, caplog):
    record = download_or_stand_in(small_set(site(server, "missing")), tmp_path, {"u.data": b"none"})
    assert (tmp_path / "u.data").read_bytes() == b"none"
    assert record == read_json(tmp_path / "source.json")
    assert record["source"] is None
    assert "HTTP 404" in record["missing"]
    assert record["sha256"] == {"u.data": hashlib.sha256(b"none").hexdigest()}
    assert any("--forcerun download_ood" in line for line in caplog.messages)
    record = download_or_stand_in(small_set(site(server, "good")), tmp_path, {"u.data": b"none"})
    assert record["missing"] is None
    assert (tmp_path / "u.data").read_bytes() == CONTENT


def test_a_failing_write_leaves_no_half_file(server, tmp_path, monkeypatch):
    def full(self, content):
        with self.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        download(small_set(site(server, "good")), tmp_path)
    assert files_below(tmp_path) == []
