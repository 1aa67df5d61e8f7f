"""The table of the bias of AdamMCMC's approximations."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from sgtune.study.adam_mcmc.acceptance_table import mean_cell
from sgtune.study.adam_mcmc.bias_findings import bias_findings
from sgtune.study.adam_mcmc.settings import chains_in
from sgtune.study.adam_mcmc.verdicts import (
    STUCK_MEANS,
    TOO_SLOW_MEANS,
    rate_text,
    squares_cause,
)
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.layout import DASH, Row, Table
from sgtune.study.report.records import Records, need

__all__ = ["adam_bias"]

VARIANTS = {
    "isotropic": "s_d = 0",
    "prolate": "s_d = 1",
    "prolate-batch": "s_d = 1, minibatch gradients",
    "minibatch-test": "s_d = 1, minibatch test",
    "exact": "s_d = 1, exact",
}
"""As the figure has them, which loads Matplotlib."""


def adam_bias(records: Records) -> Table:
    """E x^2 and acceptance: a row per variant, D and number, a column per gamma / s."""
    name = "adam_bias"
    [found] = need(records, "bias", name)
    cells = {(c["dimension"], c["variant"], c["ratio"]): c for c in found["cells"]}
    ratios = list(dict.fromkeys(ratio for _, _, ratio in cells))
    rows = []
    for dimension, variant in dict.fromkeys((d, v) for d, v, _ in cells):
        for metric, key, label in (
            ("second_moment", "squares", "E x²"),
            ("acceptance_rate", "acceptance", "Acceptance"),
        ):
            own = []
            for ratio in ratios:
                cell = cells[dimension, variant, ratio]
                # Squares of chains that hardly move are those of their starts.
                cause = squares_cause(cell, found["steps"]) if key == "squares" else ""
                values = [] if cause else cell[key]
                n_tests = chains_in(found, variant) * found["steps"]
                own.append(
                    mean_cell(
                        {"target": f"gaussian-{dimension}"},
                        metric,
                        values,
                        f"{ratio:g}",
                        variant=variant,
                        missing=cause or DASH,
                        text=rate_text(values, n_tests) if key == "acceptance" else None,
                    )
                )
            rows.append(Row((f"D = {dimension:,}", VARIANTS[variant], label), tuple(own)))
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"{' '.join(bias_findings(found))}\n"
        f"N(0, I) at s = {found['scale']:g} / √D: E x² of a coordinate, 1 under the target, and the acceptance "
        f"rate. {found['chains']} chains ({chains_in(found, 'exact')} of the exact variant) of {found['steps']:,} "
        f"steps from exact draws, after {found['warmup']:,} of warm-up; ± one standard error. "
        f"{STUCK_MEANS} {TOO_SLOW_MEANS} “< x”: less than one acceptance is expected in all tests.",
        stub=("Target", "Variant", "Number"),
        columns=tuple(("γ / s", f"{ratio:g}") for ratio in ratios),
        rows=tuple(rows),
    )
