"""Shared by the tests of data sets: damage to files, and the errors that refuse it."""

from dataclasses import replace

import numpy as np
import pytest

from sgtune.study.posteriors.downloads import download
from sgtune.support.errors import DataError


def assert_refuses(words, function, *arguments, name="", **named):
    """The error is one line that holds ``words`` and names the file."""
    with pytest.raises(DataError, match=words) as caught:
        function(*arguments, **named)
    assert "\n" not in str(caught.value)
    assert (name or str(arguments[0])) in str(caught.value)


def put(index, value):
    def change(array):
        array = np.array(array)
        array[index] = value
        return array

    return change


def packaged(data_set, folder):
    """``data_set`` from the package that contains it, with verified checksums and without its own site."""
    record = download(replace(data_set, sources=data_set.sources[1:]), folder)
    assert record["source"] == str(data_set.sources[1])
