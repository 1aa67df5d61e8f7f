"""The jobs that a run makes: those behind its tables and figures."""

from collections.abc import Mapping

from sgtune.study.config.sections import has_horizons, has_regret, model_settings
from sgtune.study.studies import MAIN, artifact, artifacts_of_run

__all__ = ["wanted_rules"]

RULES = {
    "data": "data",
    "reference": "combine_nuts",
    "cost": "calibrate_cost",
    "tuning": "tune_sampler",
    "evaluation": "evaluate_sampler",
    "clocks": "compare_clocks",
    "screen": "screen_grid",
    "regret": "rerun_finalists",
    "horizons": "compare_horizons",
    "estimates": "estimate_discrepancies",
    "widths": "measure_widths",
    "ladder": "gaussian_ladder",
    "sensitivity": "measure_sensitivity",
}
"""The rule behind each kind of file that artifacts are made from (`sgtune.study.catalogue.Artifact.kinds`)."""

COST = "the costs of a step"
"""Stands for `calibrate_cost` in a model without a cost table, and for nothing in one that has it."""

NEEDS = {
    "find_map": ("data",),
    "sample_nuts": ("find_map",),
    "combine_nuts": ("find_map", "sample_nuts"),
    "calibrate_cost": ("find_map",),
    "tune_sampler": ("find_map", COST),
    "evaluate_sampler": ("combine_nuts", COST, "tune_sampler"),
    "compare_clocks": ("combine_nuts", COST, "evaluate_sampler"),
    "screen_grid": ("combine_nuts", COST),
    "rerun_finalists": ("screen_grid", "tune_sampler"),
    "compare_horizons": ("combine_nuts", COST),
    "estimate_discrepancies": ("find_map", COST),
    "measure_widths": ("combine_nuts",),
}
"""The rules whose results a rule reads. A model without a reference has no jobs of NUTS, so they do no harm here."""


def wanted_rules(config: Mapping) -> set[tuple[str, str]]:
    """(rule, model) of the jobs behind the artifacts of a run; the model is empty for rules without one."""
    wanted: set[tuple[str, str]] = set()
    for name in artifacts_of_run(config, MAIN):
        entry = artifact(name)
        for kind in entry.kinds:
            rule = RULES.get(kind)
            if rule in ("gaussian_ladder", "measure_sensitivity"):
                wanted.add((rule, ""))
            elif rule is not None:
                for model in [entry.model] if entry.model else config["models"]:
                    if _has(rule, model, config):
                        _add(wanted, rule, model, config)
    return wanted


def _has(rule: str, model: str, config: Mapping) -> bool:
    """Whether a model of the run has jobs of this rule."""
    if rule == "compare_horizons":
        return has_horizons(config, model)
    if rule in ("screen_grid", "rerun_finalists"):
        return has_regret(config, model)
    return rule != "measure_widths" or model_settings(config, model)["reference"]["nuts"]


def _add(wanted: set[tuple[str, str]], rule: str, model: str, config: Mapping) -> None:
    """Add a rule of a model, and all that it needs."""
    if rule == COST:
        if model_settings(config, model)["calibration"]["table"]:
            return
        rule = "calibrate_cost"
    if (rule, model) not in wanted:
        wanted.add((rule, model))
        for other in NEEDS.get(rule, ()):
            _add(wanted, other, model, config)
