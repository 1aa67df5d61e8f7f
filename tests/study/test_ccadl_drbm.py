"""The discriminative RBM of the CCAdL study: averaged predictions, values during a run, and unavailable sets."""

import numpy as np
import pytest

from sgtune.metrics import mean_prediction
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.ccadl.drbm import RunningPrediction, sample_errors, sizes_of
from sgtune.study.pipeline.parts import Parts
from sgtune.study.posteriors import classification, drbm
from sgtune.study.report import make_figure, make_table
from sgtune.support.files import write_json
from sgtune.support.randomness import named_key


def test_predictions_are_averaged_once_the_burn_in_is_over():
    targets = np.array([0, 1, 2])
    rng = np.random.default_rng(0)
    read = rng.dirichlet(np.ones(3), size=(5, 3))
    running = RunningPrediction(targets, burn_in=2)
    found = [running.add(each) for each in read]
    for i, (error, loss) in enumerate(found):
        mean = read[i] if i < 2 else read[2 : i + 1].mean(axis=0)
        assert error == np.mean(mean.argmax(axis=1) != targets)
        assert loss == pytest.approx(-np.mean(np.log(mean[[0, 1, 2], targets])))


def test_a_prediction_that_is_not_finite_stays_lost_after_the_burn_in():
    whole, lost = np.full((2, 2), 0.5), np.full((2, 2), np.nan)
    running = RunningPrediction(np.array([0, 1]), burn_in=1)
    assert running.add(lost) == (None, None)
    assert running.add(whole)[0] is not None
    assert running.add(lost) == (None, None)
    assert running.add(whole) == (None, None)


SETTINGS = {
    **{"step_sizes": {"letter": [0.01], "acoustic": [0.01]}, "frictions": [1.0, 10.0], "batch_size": 20},
    **{"passes": 3, "burn_in": 0.4, "readings": 5, "draws_per_reading": 2, "replicates": 1},
}


@pytest.fixture(scope="module")
def model():
    arrays = classification.simulate("letter", 200)
    test_data = {"inputs": arrays["test_inputs"], "targets": arrays["test_labels"]}
    return drbm.from_arrays(
        arrays["train_inputs"], arrays["train_labels"], n_hidden=5, n_classes=26, test_data=test_data
    )


def test_sizes_are_counted_in_the_model(model):
    assert sizes_of(model) == {
        **{"n_train": 200, "n_test": 40, "n_classes": 26, "n_features": 16, "n_hidden": 5},
        "n_parameters": 5 * (16 + 26 + 1) + 26,
    }


def test_errors_are_those_of_the_chain(model, tmp_path):
    record = sample_errors("letter", "ccadl", model, SETTINGS, seed=1, parts=Parts(tmp_path))
    assert np.allclose(record["passes"], [0.6, 1.2, 1.8, 2.4, 3.0])
    assert record["burn_in_passes"] == pytest.approx(1.2)
    arms = [Arm(step_size=0.01, batch_size=20, friction=friction) for friction in (1.0, 10.0)]
    start = model.init(named_key(1, "ccadl", "letter", 0))
    chain = Lockstep.at_mode(
        model, "ccadl-diagonal", arms, position=start, seed=1, replicate="ccadl 0"
    ).advance(30)
    # Each reading of six steps has two draws, the second at its end; two readings are burn-in.
    kept = chain[[i - 1 for i in (15, 18, 21, 24, 27, 30)], 1]
    mean = mean_prediction(model, kept)
    targets = model.test_data["targets"]
    last = record["cells"][1]["replicates"][0]
    assert last["errors"][-1] == pytest.approx(np.mean(mean.argmax(axis=1) != targets))
    own = mean[np.arange(len(targets)), targets]
    assert last["log_losses"][-1] == pytest.approx(-np.mean(np.log(own)), rel=1e-5)


PROVENANCE = {"run": "mine", "seed": 0, "commit": "c" * 40, "created": "2026-01-02T03:04:05", "versions": {}}
REASON = "acoustic: no source has it: not from site example.org: no route"


def files_of(folder, model, missing):
    """Result files of one available set and of unavailable ones."""
    paths = []
    for data_set in ("letter", *missing):
        for method in ("sgnht", "ccadl"):
            path = folder / f"ccadl/drbm/{data_set}/{method}.json"
            if data_set in missing:
                record = {"set": data_set, "method": method, "missing": REASON}
            else:
                record = sample_errors(
                    data_set, method, model, SETTINGS, parts=Parts(folder / "parts" / method)
                )
            write_json(path, record | {"provenance": PROVENANCE})
            paths.append(path)
        path = folder / f"ccadl/map/{data_set}.json"
        own = {"missing": REASON} if data_set in missing else {"missing": None, **sizes_of(model)}
        write_json(
            path,
            {"set": data_set, **own, "test": {"accuracy": 0.5, "log_loss": 1.0}, "provenance": PROVENANCE},
        )
        paths.append(path)
    return paths


def test_an_unavailable_set_leaves_a_line_in_every_artifact(model, tmp_path):
    paths = files_of(tmp_path, model, missing=["acoustic"])
    for name in ("drbm_sets", "drbm_errors"):
        out = {ending: tmp_path / f"{name}.{ending}" for ending in ("csv", "md", "html")}
        make_table(name, paths, **out)
        text = out["md"].read_text()
        assert "SensIT acoustic is not among them: no source has it." in text
        assert "example.org" not in text
        assert "Letter" in text
    assert "unavailable" in (tmp_path / "drbm_sets.md").read_text()
    make_figure("drbm_curves", paths, svg=tmp_path / "f.svg", pdf=tmp_path / "f.pdf")
    assert (tmp_path / "f.svg").stat().st_size > 10_000


def test_the_study_goes_on_with_no_set_at_all(tmp_path):
    paths = []
    for kind, name in (("drbm", "acoustic/ccadl"), ("map", "acoustic")):
        paths.append(tmp_path / f"ccadl/{kind}/{name}.json")
        write_json(
            paths[-1], {"set": "acoustic", "method": "ccadl", "missing": REASON, "provenance": PROVENANCE}
        )
    out = {ending: tmp_path / f"t.{ending}" for ending in ("csv", "md", "html")}
    make_table("drbm_errors", paths, **out)
    assert "No data set is available" in out["md"].read_text()
    make_figure("drbm_curves", paths, svg=tmp_path / "f.svg", pdf=tmp_path / "f.pdf")
