"""Checks of the configuration that compare one key of a model's settings with another."""

from collections.abc import Mapping
from math import prod
from pathlib import Path

from sgtune.sampling.budget import read_costs
from sgtune.study.catalogue import MODELS, PREDICTIVE_LOSSES, TUNERS, losses_of
from sgtune.study.config.sections import leaves, model_settings, settings_of, shapes_of
from sgtune.support.axes import FRICTION, NOISE_ESTIMATE
from sgtune.support.errors import InputError

__all__ = ["SMALL_DIMENSION", "check_config"]

MOST_ARMS = 81
"""Of a sampler in the study of AdamMCMC."""

SMALL_DIMENSION = 200
"""As `sgtune.model.posterior.LARGE_DIMENSION`, whose module imports JAX."""


def check_config(config: Mapping) -> None:
    """Check what a key alone does not show; the first failure is reported.

    Args:
        config: valid key by key, defaults filled in.

    Raises:
        InputError: one line naming the key, its value and what is allowed.
    """
    of_logistic = config["data"]["logistic"]
    if not of_logistic["n_train"] < of_logistic["n_rows"]:
        what = f"be < data.logistic.n_rows = {of_logistic['n_rows']}, to leave rows for the test set"
        _refuse("data.logistic.n_train", of_logistic["n_train"], what)
    for model in config["models"]:
        settings = _Settings(config, model)
        _check_judges(settings)
        _check_arms(settings)
        _check_runs(settings)
        _check_costs(config, settings)
    _check_ccadl(config["ccadl"])
    for sampler, grid in config["adam_mcmc"]["grids"].items():
        n_arms = prod(map(len, grid.values()))
        if n_arms > MOST_ARMS:
            why = ", the number of combinations"
            _refuse(f"adam_mcmc.grids.{sampler}", n_arms, f"be <= {MOST_ARMS}", why)


def _refuse(key: str, value: object, what: str, why: str = "") -> None:
    raise InputError(f"{key}: {value!r} is not allowed{why}; it must {what}")


class _Settings(dict):
    """The settings of one model, and the full names of its keys in the configuration."""

    def __init__(self, config: Mapping, model: str):
        super().__init__(model_settings(config, model))
        of_data = self["data"][model]
        self.model = model
        self.n_data, self.dimension = MODELS[model].n_data(of_data), MODELS[model].dimension(of_data)
        self._own = dict(leaves(config["per_model"].get(model, {})))

    def key(self, path: str) -> str:
        """The name of a key: under ``per_model`` if it is set there."""
        return f"per_model.{self.model}.{path}" if path in self._own else path

    def value(self, path: str) -> object:
        section, _, key = path.partition(".")
        return self[section][key]

    def refuse(self, path: str, what: str, why: str = "") -> None:
        _refuse(self.key(path), self.value(path), what, why)


def _check_judges(settings: _Settings) -> None:
    """Of what judges the arms."""
    model, reference = settings.model, settings["reference"]
    for i, tuner in enumerate(settings["tuners"]):
        if TUNERS[tuner].needs_classes and MODELS[model].task != "classification":
            why = f" for {model}, which is not a classifier"
            _refuse(f"{settings.key('tuners')}[{i}]", tuner, "judge without predicted classes", why)
    if reference["n_draws"] % reference["chains"]:
        chains = f"{settings.key('reference.chains')} = {reference['chains']}"
        settings.refuse("reference.n_draws", f"be a multiple of {chains}")
    by_predictions = [loss for loss in losses_of(model, reference["nuts"]) if loss in PREDICTIVE_LOSSES]
    if by_predictions and not settings["regret"]["prediction_draws"]:
        reason = "" if reference["nuts"] else ", which has no reference"
        why = f" for {model}{reason}: its arms are judged by {' and '.join(by_predictions)}"
        settings.refuse("regret.prediction_draws", "be >= 1", why)


def _check_arms(settings: _Settings) -> None:
    """Of the hyperparameters: all combinations of a grid are arms."""
    grid, of_grid = settings["grids"], f"grids.{settings.model}"
    smaller = grid.get("smaller", {})
    if smaller.get("samplers") and "log10_step_sizes" not in smaller:
        samplers = ", ".join(smaller["samplers"])
        what = f"missing; it must be a list of the step sizes for {samplers}"
        raise InputError(f"{of_grid}.smaller.log10_step_sizes: {what}")
    friction, noise = (grid.get(axis.in_grids, [axis.default]) for axis in (FRICTION, NOISE_ESTIMATE))
    if max(noise) > min(friction):
        what = f"be <= {min(friction)!r}, the smallest friction of the grid"
        _refuse(f"{of_grid}.noise_estimate", max(noise), what)
    fractions = {f"{of_grid}.batch_fractions[{i}]": value for i, value in enumerate(grid["batch_fractions"])}
    for path in ("grid.batch_fraction", "heuristic.batch_fraction", "estimates.batch_fraction"):
        fractions[settings.key(path)] = settings.value(path)
    key, values = settings.key("estimates.batch_fractions"), settings["estimates"]["batch_fractions"]
    fractions |= {f"{key}[{i}]": value for i, value in enumerate(values)}
    rows = f"{1 / settings.n_data:g}, one of the {settings.n_data} training rows"
    for key, fraction in fractions.items():
        # A batch has floor(fraction * N) rows (preprint Table 4).
        if fraction * settings.n_data * (1 + 1e-12) < 1:
            _refuse(key, fraction, f"be >= {rows}")
    if 0 < settings["tuning"]["validation_fraction"] * settings.n_data < 1:
        settings.refuse("tuning.validation_fraction", f"be 0 or >= {rows}")


def _check_runs(settings: _Settings) -> None:
    """Of how long something runs."""
    # Adam runs only where D is larger (`sgtune.mode.find`).
    if settings["map"]["max_steps"] == 0 and settings.dimension and settings.dimension <= SMALL_DIMENSION:
        why = f" for {settings.model}, which has {settings.dimension} parameters: only above {SMALL_DIMENSION} does"
        settings.refuse("map.max_steps", "be >= 1", f"{why} Adam find a mode without L-BFGS")
    most, longest = "estimates.max_points", "evaluation.seconds"
    if settings["estimates"]["thin"] > settings.value(most):
        what = f"be <= {settings.key(most)} = {settings.value(most)}, or no point is left"
        settings.refuse("estimates.thin", what)
    times = settings["evaluation"]["curves"]["seconds"]
    if times[-1] > settings.value(longest):
        what = f"end at <= {settings.key(longest)} = {settings.value(longest)}"
        why = "; a curve is the first seconds of a run behind the tables"
        _refuse(settings.key("evaluation.curves.seconds"), times, what, why)


def _check_costs(config: Mapping, settings: _Settings) -> None:
    """A given table must have the cost of every step that the run can make for the model, at its N and D."""
    table, results = settings["calibration"]["table"], f"results/{config['run']}"
    if table is None:
        return
    try:
        if Path(results).resolve() in Path(table).resolve().parents:
            raise InputError(f"the run itself writes to {results}/; copy the file elsewhere")
        costs = read_costs(table, settings.model, settings.n_data, settings.dimension)
        for shape in shapes_of(settings_of(config, "cost", settings.model), settings.n_data):
            costs.lookup(*shape)
    except InputError as problem:
        key = settings.key("calibration.table")
        raise InputError(f"{key}: {table!r} is not allowed: {problem}") from None


def _check_ccadl(section: Mapping) -> None:
    """Of the section ``ccadl``."""
    normal, reference = section["normal"], section["logistic"]["reference"]
    if reference["n_draws"] % reference["chains"]:
        what = f"be a multiple of ccadl.logistic.reference.chains = {reference['chains']}"
        _refuse("ccadl.logistic.reference.n_draws", reference["n_draws"], what)
    rows = dict.fromkeys(("logistic", "drbm"), ("data.simulated", section["data"]["simulated"]))
    for name, (other, most) in {"normal": ("normal.n_data", normal["n_data"]), **rows}.items():
        size = section[name]["batch_size"]
        if most is not None and size > most:
            _refuse(f"ccadl.{name}.batch_size", size, f"be <= ccadl.{other} = {most}")
