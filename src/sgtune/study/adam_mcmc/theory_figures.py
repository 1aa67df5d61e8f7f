"""The figures that check the samplers: bias against gamma / s, and total variation against steps."""

# ruff: noqa: RUF001 - labels have Greek letters and signs of mathematics

from matplotlib.figure import Figure

from sgtune.study.adam_mcmc.names import mean_of
from sgtune.study.artifacts.records import Records, need
from sgtune.study.artifacts.style import BLUE, INK, ORANGE, VERMILION, WIDTH, log_ticks, styled
from sgtune.study.catalogue.tuners import GREEN, PURPLE

__all__ = ["VARIANTS", "adam_bias_curves", "adam_distances"]

VARIANTS = {
    "isotropic": ("s_d = 0", BLUE, "s"),
    "prolate": ("s_d = 1", VERMILION, "o"),
    "prolate-batch": ("s_d = 1, minibatch gradients", ORANGE, "^"),
    "minibatch-test": ("s_d = 1, minibatch test", PURPLE, "v"),
    "exact": ("s_d = 1, exact", GREEN, "D"),
}
"""Label, colour and marker of each variant of AdamMCMC."""

DISTANCES = {
    "mala-grid": ("MALA, exactly", INK, "-"),
    "mala": ("MALA", BLUE, (0, (4, 1.2))),
    "adam-mcmc-exact": ("AdamMCMC, exact", GREEN, "-"),
    "adam-mcmc-exact-slow": ("AdamMCMC, exact, Adam's b₁, b₂", PURPLE, (0, (1.2, 1.2))),
    "adam-mcmc": ("AdamMCMC, γ / s = 0.1", VERMILION, "-"),
    "adam-mcmc-large": ("AdamMCMC, γ / s = 1", ORANGE, "-"),
}


@styled
def adam_bias_curves(records: Records) -> Figure:
    """A panel per D: E x^2 against gamma / s, a line per variant, two standard errors."""
    [found] = need(records, "bias", "adam_bias_curves")
    dimensions = list(dict.fromkeys(cell["dimension"] for cell in found["cells"]))
    figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
    axes = figure.subplots(1, len(dimensions), squeeze=False, sharey=True)[0]
    for axis, dimension in zip(axes, dimensions, strict=True):
        axis.axhline(1, color=INK, alpha=0.35, linewidth=1.6)
        for variant, (label, color, marker) in VARIANTS.items():
            own = [
                (cell["ratio"], *mean_of(cell["squares"]))
                for cell in found["cells"]
                if (cell["variant"], cell["dimension"]) == (variant, dimension)
            ]
            if own:
                ratios, means, errors = zip(*sorted(own), strict=True)
                axis.errorbar(
                    ratios,
                    means,
                    yerr=[2 * (error or 0) for error in errors],
                    color=color,
                    marker=marker,
                    markersize=3.5,
                    linewidth=1.1,
                    label=label if axis is axes[0] else None,
                )
        axis.set_xscale("log")
        axis.set_title(f"D = {dimension}")
        axis.set_xlabel("γ / s")
        log_ticks(axis.xaxis)
    axes[0].set_ylabel("E x²")
    axes[0].set_ylim(bottom=0)
    figure.legend(loc="outside lower center", ncols=3, handlelength=2.6)
    return figure


@styled
def adam_distances(records: Records) -> Figure:
    """Total variation against the number of steps, in log scale, with the floor of the histograms."""
    [found] = need(records, "distances", "adam_distances")
    figure = Figure(figsize=(0.9 * WIDTH, 3.0), layout="constrained")
    axis = figure.subplots()
    for line in found["lines"]:
        label, color, style = DISTANCES[line["name"]]
        if line["fit"] is not None:
            label += f": {line['fit']['rate']:.3f} a step"
        axis.plot(line["distances"], color=color, linestyle=style, linewidth=1.2, label=label)
    axis.axhline(found["floor"], color=INK, alpha=0.35, linewidth=1.6, label="exact draws")
    axis.set_yscale("log")
    axis.set_ylim(bottom=found["floor"] / 3)
    axis.set_xlabel("steps")
    axis.set_ylabel("total variation to the target")
    figure.legend(loc="outside right upper", fontsize="small")
    return figure
