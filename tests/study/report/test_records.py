"""Records from result files: by kind, for each tuner, and of an artifact."""

import pytest
from artifact_records import PROVENANCE, SAMPLERS, make_files, make_records, record_of, records_of

from sgtune.study.pipeline.provenance import summarise
from sgtune.study.report.artifact import Artifact
from sgtune.study.report.records import load_records, looks_at_test_set, provenances, required
from sgtune.study.report.records import records_of as records_of_artifact
from sgtune.support.errors import DataError
from sgtune.support.files import write_json


def test_a_record_for_each_tuner_of_a_file_with_the_runs_of_its_arms():
    likes = {"grid": ["mamba-ksd"] * 2, "mamba-fssd": [None, None], "grid-ksd": [None, "grid-ksd"]}
    files = make_files(3, ("logistic",), choices=[("logistic/sgld", *one) for one in likes.items()])
    records = records_of(files)
    # Each tuner has two tuning runs, except the heuristic and theory.
    assert (len(records["tuning"]), len(records["evaluation"])) == (6 * 12, 6 * 7)
    written = files["evaluation"]["logistic/sgld"]
    chosen = [one["best"] for one in records["tuning"] if one["sampler"] == "sgld"]
    for tuned in written["tuners"]:
        record = record_of(records, "logistic", "sgld", tuned["tuner"])
        assert record["n_data"] == 800_000
        assert all(arm in chosen for arm in record["arms"])
        assert record["best"] == next((arm for arm in record["arms"] if arm is not None), None)
        for replicate, (place, row) in enumerate(zip(tuned["runs"], record["table"], strict=True)):
            run = (
                {"table": {"replicate": replicate, "no_arm": True}}
                if place is None
                else written["runs"][place]
            )
            assert row == run["table"]
            assert run.get("arm") == record["arms"][replicate % len(record["arms"])]
        runs = [written["runs"][place] for place in tuned["runs"] if place is not None]
        assert record["curves"] == [row for run in runs for row in run["curves"]]
    places = {tuned["tuner"]: tuned["runs"] for tuned in written["tuners"]}
    assert places["grid"] == places["mamba-ksd"]
    assert places["mamba-fssd"] == [None] * 3
    assert [place is None for place in places["grid-ksd"]] == [True, False, True]


def test_runs_behind_curves_alone_give_no_row_of_a_table():
    files = make_files(3, ("pmf",), choices=[("pmf/sgld", "grid", [None, "grid"])])
    for run in files["evaluation"]["pmf/sgld"]["runs"]:
        run["table"] = run["table"] if run["replicate"] == 0 else None
    records = records_of(files)
    (row,) = record_of(records, "pmf", "sgld", "mamba-ksd")["table"]
    assert row["replicate"] == 0
    assert {row["replicate"] for row in record_of(records, "pmf", "sgld", "mamba-ksd")["curves"]} == {0, 1, 2}
    grid = record_of(records, "pmf", "sgld", "grid")
    assert grid["table"] == [{"replicate": 0, "no_arm": True}]
    assert {row["replicate"] for row in grid["curves"]} == {1}
    # Nor where no tuner has an arm for the last of them.
    for tuned in files["evaluation"]["pmf/sgld"]["tuners"]:
        tuned["runs"][2] = None
    assert len(record_of(records_of(files), "pmf", "sgld", "mamba-ksd")["table"]) == 1


def test_the_provenance_of_a_file_is_counted_once_however_many_records_it_gives_and_a_reference_has_its_chains():
    records = make_records(1, ("pmf",))
    assert len(records["tuning"] + records["evaluation"]) == (7 + 4) * len(SAMPLERS)
    # The provenances of the files are equal, but each counts.
    summary = summarise(provenances({kind: records[kind] for kind in ("tuning", "evaluation", "regret")}))
    assert summary["files"] == 3 * len(SAMPLERS)
    assert summary["seconds"] == pytest.approx(PROVENANCE["seconds"] * 3 * len(SAMPLERS))
    # Other records have the number of their chains.
    of = {rule: PROVENANCE | {"rule": rule} for rule in ("sample_nuts", "combine_nuts", "bias")}
    found = [{"chains": [dict(of["sample_nuts"]) for _ in range(2)], "provenance": of["combine_nuts"]}]
    found += [{"chains": 32, "provenance": of["bias"]}]
    rules = [one["rule"] for one in provenances({"reference": found})]
    assert rules == ["sample_nuts", "sample_nuts", "combine_nuts", "bias"]


def test_an_artifact_has_the_records_of_its_kinds_its_model_and_its_tuners():
    own = {"model": "pmf", "tuner": "grid"}
    records = {"tuning": [own, own | {"tuner": "theory"}, own | {"model": "bnn"}], "cost": [{"model": "pmf"}]}
    about = Artifact(("tuning", "regret"), "", model="pmf", without=("theory",))
    assert records_of_artifact(records, about) == {"tuning": [own], "regret": []}
    with pytest.raises(DataError, match=r"^no regret records; it needs at least one$"):
        required(records_of_artifact(records, about), "regret")


def test_the_kind_of_a_file_is_its_folder_or_its_name(tmp_path):
    kinds = ("tuning", "settings", "published")
    # A run may have the name of a kind.
    write_json(tmp_path / "tuning/settings.json", {"of": "a run"})
    (tmp_path / "published.csv").write_text("model,value\npmf,1.5\n")
    records = load_records([tmp_path / "tuning/settings.json", tmp_path / "published.csv"], kinds)
    assert records == {
        "tuning": [],
        "settings": [{"of": "a run"}],
        "published": [{"model": "pmf", "value": 1.5}],
    }
    with pytest.raises(DataError, match="its path must name one of tuning, settings, published"):
        load_records([tmp_path / "elsewhere/x.json"], kinds)
    with pytest.raises(DataError, match="the file is missing"):
        load_records([tmp_path / "tuning/x.json"], kinds)


def test_a_tuner_looks_at_the_test_set_unless_it_held_out_training_data():
    found = [{"tuner": name} for name in ("grid", "mamba", "oracle")] + [
        {"tuner": "grid", "validation_fraction": 0.1}
    ]
    assert [looks_at_test_set(one) for one in found] == [True, False, False, False]
