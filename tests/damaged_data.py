"""Shared by the tests of data sets: errors that refuse damaged files, and sets from the packages that carry them."""

from dataclasses import replace

import pytest

from sgtune.study.posteriors.downloads import download
from sgtune.support.errors import DataError

__all__ = ["assert_refuses", "packaged"]


def assert_refuses(words, function, *arguments, name="", **named):
    """The error is one line that holds ``words`` and names the file."""
    with pytest.raises(DataError, match=words) as caught:
        function(*arguments, **named)
    assert "\n" not in str(caught.value)
    assert (name or str(arguments[0])) in str(caught.value)


def packaged(data_set, folder):
    """``data_set`` from the package that contains it, with verified sums and without its own site."""
    record = download(replace(data_set, sources=data_set.sources[1:]), folder)
    assert record["source"] == data_set.sources[1].label
