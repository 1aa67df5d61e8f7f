"""Shared by tests of a job's pieces: its log, and a record of its calls."""

from sgtune.study import per_sampler as jobs
from sgtune.study.parts import Parts

__all__ = ["TAKEN", "Calls", "Log"]

TAKEN, OTHER = "kept from an unfinished job", "with other settings, inputs or code: made again"


class Log(list):
    """Lines of a job, and what it does with pieces."""

    def __init__(self, folder):
        self.parts = Parts(folder, self.append)

    def taken(self):
        return [line.partition(":")[0] for line in self if line.endswith(TAKEN)]

    def other(self):
        return [line.partition(":")[0] for line in self if line.endswith(OTHER)]


class Calls(list):
    """Of a function of the module, from now on; the call ``killed_at`` never ends."""

    killed_at = None

    def __init__(self, monkeypatch, name, describe):
        function = getattr(jobs, name)

        def spy(*arguments, **options):
            call = describe(*arguments, **options)
            if call == self.killed_at:
                raise KeyboardInterrupt
            self.append(call)
            return function(*arguments, **options)

        monkeypatch.setattr(jobs, name, spy)
