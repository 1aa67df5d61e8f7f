"""Records from result files: by kind, for each tuner, and of an artifact."""

import pytest
from artifact_records import PROVENANCE, SAMPLERS, make_records

from sgtune.study.pipeline.provenance import summarise
from sgtune.study.report.artifact import Artifact
from sgtune.study.report.records import (
    load_records,
    looks_at_test_set,
    provenances,
    records_of,
    required,
    rows_of,
)
from sgtune.support.errors import DataError
from sgtune.support.files import write_json


def test_a_tuner_has_the_runs_of_its_arms_and_a_row_for_each_replicate_of_the_table():
    """Of two arms; the last replicate is behind curves alone."""
    arms = [{"step_size": 0.1}, {"step_size": 0.2}]
    runs = [
        {
            "replicate": i,
            "table": {"replicate": i, **arm} if i < 3 else None,
            "curves": [arm | {"seconds": i}],
        }
        for i in range(4)
        for arm in arms
    ]
    lost = [{"replicate": i, "no_arm": True} for i in range(3)]
    found = rows_of({"arms": [None, arms[1]], "runs": [None, 3, None, 7]}, runs)
    assert found["best"] == arms[1]
    assert found["table"] == [lost[0], runs[3]["table"], lost[2]]
    assert found["curves"] == runs[3]["curves"] + runs[7]["curves"]
    # Nor has one without an arm a row of the last replicate.
    assert rows_of({"arms": [None], "runs": [None] * 4}, runs) == {"best": None, "table": lost, "curves": []}


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
    assert records_of(records, about) == {"tuning": [own], "regret": []}
    with pytest.raises(DataError, match=r"^no regret records; it needs at least one$"):
        required(records_of(records, about), "regret")


def test_the_kind_of_a_file_is_its_folder_or_its_name(tmp_path):
    kinds = ("tuning", "settings", "published")
    # A run may have the name of a kind.
    write_json(tmp_path / "tuning/settings.json", {"of": "a run"})
    (tmp_path / "published.csv").write_text("model,value\npmf,1.5\n")
    # A file of several tuners is a record of each.
    tuners = [{"tuner": "grid", "replicate": i} for i in range(2)]
    write_json(tmp_path / "tuning/sgld.json", {"model": "pmf", "tuners": tuners})
    paths = [tmp_path / name for name in ("tuning/settings.json", "published.csv", "tuning/sgld.json")]
    assert load_records(paths, kinds) == {
        "tuning": [{"model": "pmf"} | own for own in tuners],
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
