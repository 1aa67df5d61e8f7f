"""Shared by tests of a job's pieces: its log, and a record of its calls."""

from sgtune.study.experiments import per_sampler as jobs
from sgtune.study.pipeline.parts import Parts

__all__ = ["TAKEN", "Calls", "Log"]

TAKEN, OTHER = "kept from an unfinished job", "with other settings, inputs or code: made again"


class Log(list):
    """The log lines of a job, and the pieces that it reused or made again."""

    def __init__(self, folder):
        self.parts = Parts(folder, self.append)

    def taken(self):
        return [line.partition(":")[0] for line in self if line.endswith(TAKEN)]

    def other(self):
        return [line.partition(":")[0] for line in self if line.endswith(OTHER)]


class Calls(list):
    """Record the calls of a function of the module; the call ``killed_at`` raises instead of ending."""

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
