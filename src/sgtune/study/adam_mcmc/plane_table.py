"""The table of AdamMCMC's bias on targets in the plane."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections.abc import Mapping, Sequence

from sgtune.study.adam_mcmc.acceptance_table import mean_cell
from sgtune.study.adam_mcmc.intervals import is_beyond
from sgtune.study.adam_mcmc.names import mean_of
from sgtune.study.adam_mcmc.settings import chains_in
from sgtune.study.adam_mcmc.verdicts import estimate_text, squares_cause
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.layout import DASH, Row, Table
from sgtune.study.report.records import Records, need
from sgtune.study.report.remarks import counted

__all__ = ["adam_plane_bias"]

TARGETS = {"gaussian": "Correlated Gaussian", "banana": "Banana", "mixture": "Mixture of two"}
VARIANTS = {
    "prolate": "as in the paper",
    "prolate-quick": "as in the paper, b₁ = 0.5, b₂ = 0.9",
    "exact": "exact, b₁ = 0.5, b₂ = 0.9",
}
SEEN_BY_CHANCE = "Of an unbiased sampler one interval in 20 excludes 1."


def adam_plane_bias(records: Records) -> Table:
    """Moments over their exact values: a row per target, moment and variant, a column per gamma / s."""
    name = "adam_plane_bias"
    [found] = need(records, "plane_bias", name)
    cells = {(c["target"], c["moment"], c["variant"], c["ratio"]): c for c in found["cells"]}
    ratios = list(dict.fromkeys(ratio for *_, ratio in cells))
    rows = []
    # Variants stand below each other, moment by moment.
    keys = [key[:3] for key in cells]
    places = {moment: place for place, moment in enumerate(dict.fromkeys(key[:2] for key in keys))}
    for target, moment, variant in dict.fromkeys(sorted(keys, key=lambda key: places[key[:2]])):
        own = []
        for ratio in ratios:
            cell = cells[target, moment, variant, ratio]
            cause = squares_cause(cell, found["steps"])
            values = [] if cause else cell["squares"]
            text = _text(values) if values else None
            missing = cause or DASH
            own.append(
                mean_cell(cell, moment, values, f"{ratio:g}", variant=variant, missing=missing, text=text)
            )
        rows.append(Row((TARGETS[target], moment, VARIANTS[variant]), tuple(own)))
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"{' '.join([*_findings(found), SEEN_BY_CHANCE])}\n"
        f"Moments over their exact values, 1 under the target, at s = {found['noise']:g} and s_d = 1. In the "
        "paper b₁ = 0.9 and b₂ = 0.999, with which chains of the exact variant are much slower; its ρ₁ = 4 and "
        "ρ₂ = 2. Correlated "
        "Gaussian: correlation 0.69, sds 1 and 1.15; squares along the eigen-directions of its covariance. Banana: "
        "x ~ N(0, 1) and y given x ~ N((x² − 1) / 2, 1/4). Mixture: 0.3 N(−a, I/4) + 0.7 N(a, I/4) with "
        "a = (0.8, 0.4); heavier side: the share of draws nearer to a. "
        f"{found['chains']} chains ({chains_in(found, 'exact')} of the exact variant) of {found['steps']:,} steps "
        f"from exact draws, after {found['warmup']:,} of "
        "warm-up; ± one standard error. “stuck”: the acceptance rate is below 10⁻³. “too slow”: the chains moved too "
        "little for about ten effective draws, or a moment differs between the halves of the run by more than 5%, "
        "and the 99.7% t interval of the difference excludes 0.",
        stub=("Target", "Moment", "Variant"),
        columns=tuple(("γ / s", f"{ratio:g}") for ratio in ratios),
        rows=tuple(rows),
    )


def _findings(found: Mapping) -> list[str]:
    """Of each variant: in how many cases the interval excludes 1, and the moment furthest from 1 at the smallest
    ratio."""
    lines = []
    for variant, label in VARIANTS.items():
        every = [cell for cell in found["cells"] if cell["variant"] == variant]
        known = [cell for cell in every if not squares_cause(cell, found["steps"])]
        if not known:
            continue
        n_off = sum(_is_off(cell["squares"]) for cell in known)
        n_slow = len(every) - len(known)
        slow = f" ({n_slow} more {'is' if n_slow == 1 else 'are'} too slow to tell)" if n_slow else ""
        smallest = min(cell["ratio"] for cell in known)
        near = [cell for cell in known if cell["ratio"] == smallest]
        worst = max(near, key=lambda cell: abs(mean_of(cell["squares"])[0] - 1))
        lines.append(
            f"{label[0].upper()}{label[1:]}: by 95% t intervals a moment differs from its exact value in {n_off} of "
            f"{counted(len(known), 'case')}{slow}; at γ / s = {smallest:g} the moment furthest from 1 is "
            f"{_text(worst['squares'])} ({TARGETS[worst['target']]}, {worst['moment']})."
        )
    return lines


def _text(values: Sequence[float]) -> str:
    """The mean and its standard error; the mean alone if all are equal."""
    value, se = mean_of(values)
    return estimate_text(value, se) or f"{value:.3g}"


def _is_off(values: Sequence[float]) -> bool:
    mean, se = mean_of(values)
    return is_beyond(mean - 1, se, len(values))
