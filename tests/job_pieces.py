"""For tests of jobs and files: a task with its pieces and log, a function that is killed at a call, refused files."""

import pytest

from sgtune.study.pipeline.parts import Parts, Task
from sgtune.support.errors import DataError


class Log(list):
    """The lines of a job, and the names of the pieces that it took or made again."""

    def __init__(self, folder, *model_and_sampler, **own):
        self.task = Task(*model_and_sampler, parts=Parts(folder, self.append), **own)

    def _named(self, ending):
        return [line.partition(":")[0] for line in self if line.endswith(ending)]

    def taken(self):
        return self._named("kept from an unfinished job")

    def other(self):
        return self._named("made again: damaged, or of other settings, inputs or code")


class Calls(list):
    """Records the calls of a function of ``module``; the call that equals ``killed_at`` raises in place of ending."""

    def __init__(self, monkeypatch, module, name, describe):
        self.killed_at, function = None, getattr(module, name)

        def spy(*arguments, **options):
            call = describe(*arguments, **options)
            if call == self.killed_at:
                self.killed_at = None
                raise KeyboardInterrupt
            self.append(call)
            return function(*arguments, **options)

        monkeypatch.setattr(module, name, spy)


def assert_refuses(words, function, *arguments, name="", **named):
    """The error is one line that holds ``words`` and names the file."""
    with pytest.raises(DataError, match=words) as caught:
        function(*arguments, **named)
    assert "\n" not in str(caught.value)
    assert (name or str(arguments[0])) in str(caught.value)
