"""LIBSVM's text format, and SensIT acoustic, which is checked by its contents, since no checksum is published."""

import bz2
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from damaged_data import assert_refuses
from served_files import serving

from sgtune.study.posteriors import classification_data as classification
from sgtune.study.posteriors.downloads import ACOUSTIC
from sgtune.study.posteriors.libsvm import parse_libsvm
from sgtune.study.posteriors.sources import Site
from sgtune.support.errors import DataError

N_FEATURES, N_CLASSES = 50, 3
N_ROWS = {"acoustic_scale": 60, "acoustic_scale.t": 15}


def as_text(inputs, labels) -> bytes:
    """As LIBSVM's tools print: six digits, zeros left out, classes from 1, a space at the end of a line."""
    lines = []
    for row, label in zip(inputs, labels, strict=True):
        pairs = "".join(f"{place + 1}:{value:g} " for place, value in enumerate(row) if value)
        lines.append(f"{label + 1} {pairs}\n")
    return "".join(lines).encode("ascii")


def made(n_rows, seed):
    rng = np.random.default_rng(seed)
    inputs = np.round(rng.uniform(-1, 1, (n_rows, N_FEATURES)), 6) * (rng.random((n_rows, N_FEATURES)) < 0.8)
    return inputs.astype(np.float32), np.arange(n_rows) % N_CLASSES


@pytest.fixture
def parts():
    return {name: made(n, seed) for seed, (name, n) in enumerate(N_ROWS.items())}


def test_rows_are_read_as_they_were_written(parts):
    for inputs, labels in parts.values():
        found, classes = parse_libsvm(
            as_text(inputs, labels), n_features=N_FEATURES, n_classes=N_CLASSES, where="a"
        )
        np.testing.assert_array_equal(found, inputs)
        np.testing.assert_array_equal(classes, labels)
        assert (found.dtype, classes.dtype) == (np.float32, np.uint8)
    # A row of zeros has only its label; the last line may lack the line end.
    found, classes = parse_libsvm(b"2\n1.0 3:-1e-2", n_features=3, n_classes=2, where="a")
    np.testing.assert_array_equal(found, np.float32([[0, 0, 0], [0, 0, -0.01]]))
    assert classes.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "expected a label and index:value pairs"),
        ("1 1:0.5 2", "expected a label and index:value pairs"),
        ("1 0.5", "expected a label and index:value pairs"),
        ("1 2:3:4 5", "expected a label and index:value pairs"),
        ("1 0:0.5", "expected a label and index:value pairs"),
        ("one 1:0.5", "expected numbers only"),
        ("1 1:one", "expected numbers only"),
        ("0 1:0.5", "label 0; expected 1 to 3"),
        ("4 1:0.5", "label 4; expected 1 to 3"),
        ("1.5 1:0.5", "label 1.5; expected 1 to 3"),
        ("nan 1:0.5", "label nan; expected 1 to 3"),
        ("1 5:0.5", "indices that grow, from 1 to 4"),
        ("1 2:0.5 1:0.5", "indices that grow, from 1 to 4"),
        ("1 2:0.5 2:0.5", "indices that grow, from 1 to 4"),
        ("1 2:nan", "finite values"),
        ("1 2:inf", "finite values"),
    ],
)
def test_a_line_of_another_form_is_named(line, words):
    content = f"1 1:0.5\n{line}\n2 1:0.5\n".encode()
    sizes = {"n_features": 4, "n_classes": 3, "where": "train"}
    assert_refuses(f"train, line 2: .*{words}", parse_libsvm, content, **sizes, name="train")
    assert_refuses("holds no rows", parse_libsvm, b"", **sizes, name="train")


def test_the_real_download_is_libsvms():
    """The real set has two bzip2 files with the numbers of rows in the paper's Table 2, as on LIBSVM's page."""
    (site,) = ACOUSTIC.sources
    folder = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/vehicle"
    assert dict(site.urls) == {name: f"{folder}/{name}.bz2" for name in N_ROWS}
    assert ACOUSTIC.check.keywords == {
        "n_rows": {"acoustic_scale": 78_823, "acoustic_scale.t": 19_705},
        "n_features": N_FEATURES,
        "n_classes": N_CLASSES,
    }


@pytest.fixture
def small(monkeypatch):
    """``address -> None``: from now on acoustic is a small set, at this address, read and checked as the real one."""

    def use(address: str, **changes) -> None:
        (site,) = ACOUSTIC.sources
        site = Site({name: f"{address}/{name}.bz2" for name in site.urls}, site.read, timeout=2)
        check = partial(ACOUSTIC.check.func, **{**ACOUSTIC.check.keywords, "n_rows": N_ROWS, **changes})
        entry = classification.SETS["acoustic"]._replace(
            download=replace(ACOUSTIC, sources=(site,), check=check), n_train=60, n_test=15
        )
        monkeypatch.setitem(classification.SETS, "acoustic", entry)

    return use


def packed(parts) -> dict[str, bytes]:
    return {f"{name}.bz2": bz2.compress(as_text(*part)) for name, part in parts.items()}


def test_acoustic_is_downloaded_read_and_prepared(parts, small, tmp_path):
    with serving(packed(parts)) as address:
        small(address)
        record = classification.prepare("acoustic", tmp_path / "data/acoustic.json", tmp_path / "downloads")
    assert record["source"] == "site 127.0.0.1"
    # Without a server: existing files are not downloaded again.
    classification.prepare("acoustic", tmp_path / "data/acoustic.json", tmp_path / "downloads")
    arrays = classification.load(tmp_path / "data", "acoustic")
    order = np.random.default_rng(0).permutation(60)
    for part, name, rows in (
        ("train", "acoustic_scale", order),
        ("test", "acoustic_scale.t", slice(None)),
    ):
        np.testing.assert_array_equal(arrays[f"{part}_inputs"], parts[name][0][rows])
        np.testing.assert_array_equal(arrays[f"{part}_labels"], parts[name][1][rows])
    # A file that changes after its download is detected without a published checksum, and downloaded again or refused.
    path = tmp_path / "downloads/acoustic/acoustic_scale"
    path.write_bytes(path.read_bytes().replace(b"1:", b"2:", 1))
    with pytest.raises(DataError, match="acoustic: no source has it: site 127"):
        classification.prepare("acoustic", tmp_path / "data/acoustic.json", tmp_path / "downloads")


def files_below(folder) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


FAULTS = {
    "missing": "HTTP 404",
    "truncated by the server": "truncated after",
    "truncated before": "EOFError: Compressed file ended",
    "no bzip2": "OSError: Invalid data stream",
    "one row less": "acoustic_scale.t: 14 rows; expected 15",
    "two classes": "acoustic_scale.t: 2 classes; expected 3",
    "one feature less": "acoustic_scale: 49 features; expected 50",
    "a word": "acoustic_scale, line 60: .*expected numbers only",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_download_leaves_nothing_and_says_why_in_a_line(parts, small, tmp_path, fault):
    train, test = parts.values()
    if fault == "one row less":
        parts["acoustic_scale.t"] = test[0][:-1], test[1][:-1]
    if fault == "two classes":
        parts["acoustic_scale.t"] = test[0], np.minimum(test[1], 1)
    if fault == "one feature less":
        train[0][:, -1] = 0
    files, name = packed(parts), "acoustic_scale.bz2"
    if fault == "missing":
        del files["acoustic_scale.t.bz2"]
    if fault == "truncated before":
        files[name] = files[name][:-20]
    if fault == "no bzip2":
        files[name] = as_text(*train)
    if fault == "a word":
        files[name] = bz2.compress(as_text(*train)[:-2] + b"x\n")
    with serving(files, truncated=(name,) if fault.endswith("server") else ()) as address:
        small(address)
        with pytest.raises(DataError, match=f"acoustic: no source has it: .*{FAULTS[fault]}") as caught:
            classification.prepare("acoustic", tmp_path / "acoustic.json", tmp_path / "downloads")
    assert "\n" not in str(caught.value)
    assert files_below(tmp_path) == []


def test_a_mirror_may_keep_acoustic_as_libsvm_does(parts, small, tmp_path):
    (tmp_path / "mirror/acoustic").mkdir(parents=True)
    for name, content in packed(parts).items():
        (tmp_path / "mirror/acoustic" / name).write_bytes(content)
    with serving({}) as address:
        small(address)
        record = classification.prepare(
            "acoustic", tmp_path / "acoustic.json", tmp_path / "downloads", mirror=tmp_path / "mirror"
        )
    assert record["source"] == f"mirror {tmp_path / 'mirror'}"
    assert classification.load(tmp_path, "acoustic")["train_inputs"].shape == (60, N_FEATURES)
