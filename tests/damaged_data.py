"""Shared by the tests of data sets: errors that refuse damaged files."""

import pytest

from sgtune.support.errors import DataError


def assert_refuses(words, function, *arguments, name="", **named):
    """The error is one line that holds ``words`` and names the file."""
    with pytest.raises(DataError, match=words) as caught:
        function(*arguments, **named)
    assert "\n" not in str(caught.value)
    assert (name or str(arguments[0])) in str(caught.value)
