"""A forecast as a table for the terminal."""

from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["Forecast", "Row"]


@dataclass(frozen=True)
class Row:
    """The jobs of one rule and model (empty: of none), and the seconds of each alone. ``timed`` jobs have the machine
    to themselves. Two of the others on two cores each take ``beside`` times as long: 1 if they do not disturb each
    other, 2 if one alone keeps all cores busy."""

    rule: str
    model: str
    jobs: list[float]
    timed: bool = False
    beside: float = 1.0

    @property
    def seconds(self) -> float:
        """Of all jobs, one after the other."""
        return sum(self.jobs)

    def in_company(self, n_cores: int) -> float:
        """Of all jobs where as many run as there are cores: of each 1 + (beside - 1) (cores - 1) times its seconds, so
        that jobs that keep all cores busy gain nothing."""
        return self.seconds * (1 + (self.beside - 1) * (n_cores - 1))


@dataclass(frozen=True)
class Forecast:
    """The expected time of a run.

    Attributes:
        sources: lines that name the sources of the numbers.
        unknown: lines that say what the forecast does not know.
    """

    run: str
    rows: list[Row]
    sources: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def hours(self, n_cores: int) -> float:
        """Of wall clock: timed jobs one at a time, the others as many at a time as there are cores."""
        return (self._timed() + self._others(n_cores)) / 3600

    def _timed(self) -> float:
        return sum(row.seconds for row in self.rows if row.timed)

    def _others(self, n_cores: int) -> float:
        others = [row for row in self.rows if not row.timed and row.jobs]
        longest = max((max(row.jobs) for row in others), default=0.0)
        return max(sum(row.in_company(n_cores) for row in others) / n_cores, longest)

    def lines(self, n_cores: int) -> Iterator[str]:
        """The table, the total, and what it rests on."""
        yield f"The expected time of the run {self.run}"
        yield ""
        yield f"{'Rule':<24}{'Model':<10}{'Jobs':>5}{'Seconds':>12}{'Hours':>9}{'Longest (h)':>13}"
        for row in self.rows:
            if row.jobs:
                yield _line(row.rule, row.model, row.jobs) + ("  timed" if row.timed else "")
        timed = [job for row in self.rows if row.timed for job in row.jobs]
        others = [job for row in self.rows if not row.timed for job in row.jobs]
        yield ""
        if timed:
            yield _line("timed, one at a time", "", timed)
        if others:
            yield _line("others", "", others)
            yield _sum(f"others, on {n_cores} cores", self._others(n_cores))
        yield _sum(f"in all, on {n_cores} cores", 3600 * self.hours(n_cores))
        for title, found in (("It is based on", self.sources), ("It does not know", self.unknown)):
            if found:
                yield ""
                yield f"{title}:"
                yield from (f"- {line}" for line in found)


def _line(name: str, model: str, jobs: list[float]) -> str:
    seconds = sum(jobs)
    return (
        f"{name:<24}{model:<10}{len(jobs):>5}{seconds:>12,.0f}{seconds / 3600:>9.2f}{max(jobs) / 3600:>13.2f}"
    )


def _sum(name: str, seconds: float) -> str:
    return f"{name:<39}{seconds:>12,.0f}{seconds / 3600:>9.2f}"
