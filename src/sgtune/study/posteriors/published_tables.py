"""Conversion of connect-4 and letter from the formats of their sources to one form: sorted rows of bytes, class last.

Sources differ in how they number classes, round values and order rows. In this form, an idx file, all sources agree
byte for byte, so that one SHA-256 holds for all.
"""

import io
import zipfile
from collections.abc import Mapping

import numpy as np

from sgtune.study.posteriors.idx import idx_bytes
from sgtune.study.posteriors.libsvm import parse_libsvm
from sgtune.study.posteriors.sources import SourceError, zip_member
from sgtune.study.posteriors.unix_compress import uncompress

__all__ = [
    "LETTER_HIGHEST",
    "N_CELLS",
    "N_LETTER_FEATURES",
    "ROWS",
    "TEST",
    "TRAIN",
    "check_libsvm",
    "connect_4_of_pmlb",
    "connect_4_of_uci",
    "letter_of_libsvm",
    "letter_of_rows",
]

ROWS, TRAIN, TEST = "rows-idx2-ubyte", "train-rows-idx2-ubyte", "test-rows-idx2-ubyte"

N_CELLS = 42
CELLS, OUTCOMES = ("b", "o", "x"), ("draw", "loss", "win")
"""The meaning of the bytes 0, 1 and 2 of connect-4: a cell is blank or taken by o or x; the outcome is for player x."""

N_LETTER_FEATURES, LETTER_HIGHEST, N_LETTERS = 16, 15, 26
N_LETTER_ROWS, FIRST_TEST_ROW = 20_000, 15_000


def _sorted_idx(rows: np.ndarray) -> bytes:
    """An idx file of ``rows`` (n, m), sorted by the first column, then the second, and so on."""
    return idx_bytes(np.ascontiguousarray(rows[np.lexsort(rows.T[::-1])], np.uint8))


def _fields(lines: list[str], separator: str, n_fields: int, what: str) -> list[list[str]]:
    rows = [line.split(separator) for line in lines]
    for number, row in enumerate(rows, start=1):
        if len(row) != n_fields:
            raise SourceError(f"{what}, line {number}: {len(row)} fields; expected {n_fields}")
    return rows


def _codes(fields: list[list[str]], columns: slice, values: tuple[str, ...], what: str) -> np.ndarray:
    """The index of each field in ``values``, as bytes."""
    places = {value: place for place, value in enumerate(values)}
    try:
        return np.array([[places[field] for field in row[columns]] for row in fields], np.uint8)
    except KeyError as error:
        raise SourceError(f"{what}: holds {error.args[0]!r}; expected {', '.join(values)}") from None


def connect_4_of_uci(archive: bytes) -> bytes:
    """`ROWS` from UCI's archive, with a member ``connect-4.data.Z`` or ``connect-4.data`` of words between commas.

    Raises:
        SourceError: the archive has no such member, or more than one, or the rows have another form.
    """
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        names = [name for name in opened.namelist() if name.rpartition("/")[2].startswith("connect-4.data")]
    if len(names) != 1:
        raise SourceError(f"{len(names)} members connect-4.data*; expected one")
    content = zip_member(archive, names[0])
    text = uncompress(content) if names[0].endswith(".Z") else content
    fields = _fields(text.decode("ascii").split(), ",", N_CELLS + 1, "connect-4.data")
    cells = _codes(fields, slice(N_CELLS), CELLS, "connect-4.data")
    outcomes = _codes(fields, slice(N_CELLS, None), OUTCOMES, "connect-4.data")
    return _sorted_idx(np.hstack((cells, outcomes)))


def connect_4_of_pmlb(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """`ROWS` from PMLB's ``connect_4.tsv``: a line of names, then lines of digits 0, 1 and 2.

    Raises:
        SourceError: the rows have another form.
    """
    lines = files["connect_4.tsv"].decode("ascii").splitlines()[1:]
    fields = _fields(lines, "\t", N_CELLS + 1, "connect_4.tsv")
    return {ROWS: _sorted_idx(_codes(fields, slice(None), ("0", "1", "2"), "connect_4.tsv"))}


def letter_of_libsvm(text: bytes) -> bytes:
    """`TRAIN` or `TEST` from LIBSVM's ``letter.scale.tr`` or ``.t``, with values -1 + 2 v / 15 rounded to 6 digits.

    Raises:
        DataError: the file is not in LIBSVM's format.
        SourceError: a value is not of the form -1 + 2 v / 15 with an integer v from 0 to 15.
    """
    inputs, labels = parse_libsvm(
        text, n_features=N_LETTER_FEATURES, n_classes=N_LETTERS, where="letter.scale"
    )
    scaled = (inputs.astype(float) + 1) * LETTER_HIGHEST / 2
    values = np.rint(scaled)
    if (np.abs(scaled - values) > 1e-3).any() or values.min() < 0 or values.max() > LETTER_HIGHEST:
        raise SourceError(f"letter.scale: a value that is not -1 + 2 v / 15, v from 0 to {LETTER_HIGHEST}")
    return _sorted_idx(np.column_stack((values.astype(np.uint8), labels)))


def letter_of_rows(packaged: Mapping[str, bytes], mirrored: Mapping[str, bytes]) -> dict[str, bytes]:
    """`TRAIN` and `TEST` from ``letter.dat``, all rows in Statlog's order, and the numbers of LIBSVM's training rows.

    The numbers are little-endian uint16 below 15,000. The rows from 15,000 on are the test set.

    Raises:
        SourceError: a file has another number of rows, or rows of another form.
    """
    fields = _fields(packaged["letter.dat"].decode("ascii").split(), ",", N_LETTER_FEATURES + 1, "letter.dat")
    values = tuple(map(str, range(LETTER_HIGHEST + 1)))
    alphabet = tuple(chr(ord("A") + label) for label in range(N_LETTERS))
    rows = np.hstack(
        (
            _codes(fields, slice(N_LETTER_FEATURES), values, "letter.dat"),
            _codes(fields, slice(N_LETTER_FEATURES, None), alphabet, "letter.dat"),
        )
    )
    train = np.frombuffer(mirrored["train_rows.u16le"], "<u2")
    if len(rows) != N_LETTER_ROWS:
        raise SourceError(f"letter.dat: {len(rows)} rows; expected {N_LETTER_ROWS}")
    if not len(train) or train.max() >= FIRST_TEST_ROW:
        raise SourceError(f"train_rows.u16le: expected numbers below {FIRST_TEST_ROW}")
    return {TRAIN: _sorted_idx(rows[train]), TEST: _sorted_idx(rows[FIRST_TEST_ROW:])}


def check_libsvm(
    files: Mapping[str, bytes], *, n_rows: Mapping[str, int], n_features: int, n_classes: int
) -> None:
    """Check the size of files in LIBSVM's format, for sets without a published checksum.

    Args:
        files: name -> content.
        n_rows: name -> expected number of rows.
        n_features: the expected highest index of each file.
        n_classes: the expected number of classes of each file; labels are the integers from 1 to this.

    Raises:
        DataError: a file is not in LIBSVM's format.
        SourceError: a file has another number of rows, features or classes.
    """
    for name, expected in n_rows.items():
        inputs, labels = parse_libsvm(files[name], n_features=n_features, n_classes=n_classes, where=name)
        classes = len(np.unique(labels))
        used = int(np.flatnonzero(inputs.any(axis=0)).max(initial=-1)) + 1
        for what, found, wanted in (
            ("rows", len(labels), expected),
            ("features", used, n_features),
            ("classes", classes, n_classes),
        ):
            if found != wanted:
                raise SourceError(f"{name}: {found} {what}; expected {wanted}")
