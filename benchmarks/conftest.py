"""The paper's logistic data set, which all benchmarks use."""

import pytest

from sgtune.study.posteriors import logistic


@pytest.fixture(scope="session")
def logistic_data_dir(tmp_path_factory):
    """A folder with 800,000 training and 200,000 test rows, made once."""
    folder = tmp_path_factory.mktemp("data")
    logistic.DATA.write(folder / "logistic.json", logistic.simulate())
    return folder
