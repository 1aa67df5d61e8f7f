"""Sentences on samplers at equal seconds: which is better, by t intervals that together hold with 95%, and what
misleads a reader."""

# ruff: noqa: RUF001 - sentences have Greek letters and signs of mathematics

from collections.abc import Mapping
from itertools import product
from math import hypot
from typing import NamedTuple

from sgtune.study.adam_mcmc.intervals import is_beyond, n_independent, t_quantile, together
from sgtune.study.adam_mcmc.names import OWN, sampler_label, samplers_in
from sgtune.study.adam_mcmc.sentences import listed, said_with_error
from sgtune.study.report.labels import MODELS
from sgtune.study.report.layout import Cell
from sgtune.study.report.means import evaluation_cells
from sgtune.study.report.remarks import counted

__all__ = [
    "error_findings",
    "log_loss_findings",
    "remarks_on_ksd",
    "remarks_on_predictions",
    "remarks_on_steps",
]

ERRORS = {"relative_sd_error_x100": "ξ(σ̂)", "xi_white_x100": "ξ whitened"}
"""Errors of the posterior's sds, in print without their factor 10²."""

FLOORS = {
    "logistic": "as many exact draws. A chain's draws are no better than exact ones: a small KSD does not mean that "
    "draws are good; compare ξ.",
    "bnn": "as many draws of the Laplace approximation, which is not the network's posterior: whether a smaller KSD "
    "is a merit is not known; compare the log-loss.",
}
"""What a KSD below its floor says, by model."""

NEAR = 0.01
"""Of a log-loss: a chain whose predictions are nearer to those of the MAP has hardly left it."""

FEW_STEPS = 30
"""An arm has at least ten steps before it is first judged: with fewer than three times as many at the end of the race,
most of its rungs add next to nothing."""


class Difference(NamedTuple):
    """A number of a sampler with a test on all data, against the same number of one without."""

    tested: str
    other: str
    against: float
    gain: float
    """How much smaller the error of the sampler with a test is."""
    se: float
    n_independent: int
    """Of the sampler that has fewer races or runs."""

    def said(self) -> str:
        """``MALA than for SGLD``."""
        return f"{sampler_label(self.tested)} than for {sampler_label(self.other)}"


def _n_independent(record: Mapping) -> int:
    return n_independent(len(record["arms"]), len(record["table"]))


def _number(own: Mapping[str, dict], sampler: str, metric: str) -> Cell:
    (cell,) = evaluation_cells(own[sampler], (metric,))
    return cell


def _differences(own: Mapping[str, dict], metric: str) -> list[Difference]:
    """Every sampler with a test against every one without, where both have the number with its error."""
    samplers = samplers_in(own.values())
    found = []
    for tested, other in product((s for s in samplers if s in OWN), (s for s in samplers if s not in OWN)):
        first, second = (_number(own, sampler, metric) for sampler in (tested, other))
        if None in (first.value, first.se, second.value, second.se):
            continue
        gain, se = second.value - first.value, hypot(first.se, second.se)
        n = min(_n_independent(own[sampler]) for sampler in (tested, other))
        found.append(Difference(tested, other, second.value, gain, se, n))
    return found


def error_findings(own: Mapping[str, dict]) -> list[str]:
    """Errors of the sds of one model: samplers with a test on all data against those without."""
    lines = []
    for metric, label in ERRORS.items():
        pairs = _differences(own, metric)
        if not pairs:
            continue
        coverage = together(len(pairs))
        clear = [pair for pair in pairs if is_beyond(pair.gain, pair.se, pair.n_independent, coverage)]
        smaller = [pair.said() for pair in clear if pair.gain > 0]
        larger = [pair.said() for pair in clear if pair.gain < 0]
        said = [
            f"{'smaller' if pairs_said is smaller else 'larger'} for {listed(pairs_said)}"
            for pairs_said in (smaller, larger)
            if pairs_said
        ]
        open_pairs = [pair for pair in pairs if pair not in clear]
        verdict = f"clearly {' and '.join(said)}" if said else "no difference is clear"
        lines.append(
            f"{MODELS[next(iter(own.values()))['model']]}, {label} of samplers with a test on all data against those "
            f"without: {verdict}{_most(open_pairs, len(pairs))}."
        )
    return lines


def _most(pairs: list[Difference], n_pairs: int) -> str:
    """The undecided pair whose difference is largest, as a share of the error of the sampler without a test."""
    if not pairs:
        return ""
    most = max(pairs, key=lambda pair: abs(pair.gain) / pair.against)
    share, error = 100 * most.gain / most.against, 100 * most.se / most.against
    direction = "smaller" if share > 0 else "larger"
    return (
        f"; undecided in {counted(len(pairs), 'pair')} of {n_pairs}, of which the largest difference is "
        f"{sampler_label(most.tested)}'s, {abs(share):.0f}% ± {error:.0f}% {direction} than "
        f"{sampler_label(most.other)}'s"
    )


def log_loss_findings(own: Mapping[str, dict]) -> list[str]:
    """The network's log-loss against the MAP's, where every chain starts."""
    at_map = next(iter(own.values()))["map"].get("log_loss")
    if at_map is None or next(iter(own.values()))["model"] != "bnn":
        return []
    sides: dict[str, list[str]] = {"smaller with": [], "larger with": [], "not clearly different with": []}
    for sampler in samplers_in(own.values()):
        cell = _number(own, sampler, "log_loss")
        if None in (cell.value, cell.se):
            continue
        gain = at_map - cell.value
        clear = is_beyond(gain, cell.se, _n_independent(own[sampler]))
        side = ("smaller with" if gain > 0 else "larger with") if clear else "not clearly different with"
        sides[side].append(f"{sampler_label(sampler)} ({said_with_error(cell.value, cell.se)})")
    said = [f"{side} {listed(samplers)}" for side, samplers in sides.items() if samplers]
    if not said:
        return []
    n_races = len(next(iter(own.values()))["arms"])
    races = "; with one race per sampler, which leaves out how much choices vary" if n_races == 1 else ""
    return [f"{MODELS['bnn']}: the log-loss of the MAP is {at_map:.4g}; it is {'; '.join(said)}{races}."]


def remarks_on_ksd(own: Mapping[str, dict]) -> list[str]:
    """The KSDs of one model that are below their floor; and the network's, where the sampler that predicts best has the
    largest."""
    lines = []
    for sampler, record in own.items():
        ksd, floor = evaluation_cells(record, ("ksd", "ksd_floor"))
        if None in (ksd.value, floor.value) or floor.value < ksd.value:
            continue
        if is_beyond(floor.value - ksd.value, ksd.se, _n_independent(record)):
            lines.append(
                f"{MODELS[record['model']]}, {sampler_label(sampler)}: the KSD, {ksd.value:.3g}, is below "
                f"{floor.value:.3g}, the KSD of {FLOORS[record['model']]}"
            )
    known = {
        sampler: (log_loss.value, ksd.value)
        for sampler, record in own.items()
        for log_loss, ksd in [evaluation_cells(record, ("log_loss", "ksd"))]
        if record["model"] == "bnn" and None not in (log_loss.value, ksd.value)
    }
    if len(known) > 1:
        best = min(known, key=lambda sampler: known[sampler][0])
        if best == max(known, key=lambda sampler: known[sampler][1]):
            lines.append(
                f"{MODELS['bnn']}: {sampler_label(best)} has the smallest log-loss, {known[best][0]:.3g}, and the "
                f"largest KSD, {known[best][1]:.4g}: chains that hardly leave the MAP have a smaller one."
            )
    return lines


def remarks_on_predictions(own: Mapping[str, dict]) -> list[str]:
    """The network's chains that predict as the MAP, where they start. (Of the logistic regression all do.)"""
    lines = []
    for sampler, record in own.items():
        (log_loss,) = evaluation_cells(record, ("log_loss",))
        at_map = record["map"].get("log_loss")
        known = None not in (at_map, log_loss.value, log_loss.se) and record["model"] == "bnn"
        if not known:
            continue
        furthest = abs(log_loss.value - at_map) + t_quantile(_n_independent(record)) * log_loss.se
        if furthest < NEAR * at_map:
            lines.append(
                f"{MODELS[record['model']]}, {sampler_label(sampler)}: the log-loss differs from the MAP's by less "
                f"than {100 * NEAR:g}%, by the 95% t interval: the chain hardly left the MAP."
            )
    return lines


def remarks_on_steps(own: Mapping[str, dict]) -> list[str]:
    """The samplers whose races and runs have few steps, because a step costs so much."""
    lines = []
    for sampler, record in own.items():
        costs = [seconds for seconds in record.get("seconds_per_step", ()) if seconds is not None]
        if not costs or record["race_seconds"] / min(costs) >= FEW_STEPS:
            continue
        lines.append(
            f"{MODELS[record['model']]}, {sampler_label(sampler)}: R pays for "
            f"{counted(int(record['race_seconds'] / min(costs)), 'step')} of the chosen arm, and the run for "
            f"{int(record['seconds'] / min(costs))}: so short a race can hardly tune, and the numbers are those of "
            "this budget."
        )
    return lines
