"""A job finds its input files, and says what its pieces depend on."""

import hashlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sgtune.study.config.sections import fingerprint
from sgtune.study.pipeline.job import Job
from sgtune.support.errors import DataError
from sgtune.support.files import write_json

SETTINGS = {"regret": {"seconds": [1, 2]}}
OF_COSTS, OF_REFERENCE = {"calibration": {"seconds": 1}}, {"reference": {"n_draws": 100}}
ROW = {"sampler": "sgld", "batch_size": 10, "n_leapfrog": None, "seconds_per_step": 0.5}


class Named(SimpleNamespace):
    """The inputs or the parameters of a job, as Snakemake names them."""

    def get(self, name, default=None):
        return getattr(self, name, default)


def job_with(inputs: dict, **params) -> Job:
    whole = {"settings": SETTINGS, "cost_settings": OF_COSTS, "reference_settings": OF_REFERENCE, **params}
    config = {"run": "trial", "seed": 3}
    return Job(SimpleNamespace(config=config, rule="a_rule", params=Named(**whole), input=Named(**inputs)))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data.json").write_text("{}")
    costs = {"rows": [ROW], "config": fingerprint(OF_COSTS)}
    write_json(tmp_path / "cost.json", costs)
    draws = {"mean": [0.0, 1.0], "sd": [1.0, 2.0], "n_draws": 100, "config": fingerprint(OF_REFERENCE)}
    write_json(tmp_path / "reference.json", draws)
    return tmp_path


def test_an_input_file_is_found_in_all_forms_that_a_rule_gives_it(folder):
    data, reference = str(folder / "data.json"), str(folder / "reference.json")
    job = job_with({"data": data, "reference": [reference], "ood": []})
    assert [job.file(name) for name in ("data", "reference", "ood", "cost")] == [data, reference, None, None]


def test_pieces_depend_on_the_settings_and_on_the_files_that_the_job_has(folder):
    data, cost = str(folder / "data.json"), str(folder / "cost.json")
    job = job_with({"data": data, "reference": [], "cost": [cost]})
    found = job.depends_on("data", "reference", "cost")
    sums = {path: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in (data, cost)}
    assert found == {"settings": SETTINGS, "inputs": sums}
    assert job.depends_on("data")["inputs"] == {data: sums[data]}


def test_a_job_without_cost_file_or_reference_has_none(folder):
    job = job_with({"cost": [], "reference": []})
    assert job.cost_table(None) is None
    assert job.reference_record() is None
    assert job.reference() is None


def test_costs_and_moments_come_from_the_input_files(folder):
    job = job_with({"cost": str(folder / "cost.json"), "reference": [str(folder / "reference.json")]})
    assert job.cost_table(None).lookup("sgld", 10, None) == 0.5
    np.testing.assert_array_equal(job.reference().sd, [1.0, 2.0])


@pytest.mark.parametrize(
    ("name", "read"), [("cost", lambda job: job.cost_table(None)), ("reference", Job.reference)]
)
def test_a_file_of_another_configuration_is_refused(folder, name, read):
    other = {f"{name}_settings": {"seed": 4}}
    job = job_with({name: str(folder / f"{name}.json")}, **other)
    with pytest.raises(DataError, match="another configuration"):
        read(job)


def test_only_a_job_whose_rule_names_a_folder_has_pieces(folder):
    assert job_with({}).parts is None
    assert job_with({}, parts=str(folder / "parts")).parts.folder == folder / "parts"
