"""The result files of a small run, as its jobs write them, for the tests of tables and figures."""

from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from artifact_parts import (  # noqa: F401 - test files import these names from here
    BATCH_FRACTIONS,
    BLOCKS,
    CONFIG,
    LOSSES,
    MODELS,
    N_DATA,
    NO_ARM_REASON,
    OOD_MISSING,
    PROVENANCE,
    PUBLISHED,
    SAMPLERS,
    STEP_SIZES,
    TUNERS,
    WORKFLOW,
    arms_of,
    evaluation_row,
    lost,
    provenance_of,
    tuners_of,
    tuning_seconds,
)
from judge_records import (
    cost_record,
    estimate_record,
    horizons_record,
    ladder_record,
    sensitivity_record,
    width_record,
)
from sampler_records import (  # noqa: F401 - as above
    choose,
    clocks_record,
    evaluation_record,
    regret_record,
    studied,
    tuning_record,
)

from sgtune.study.report.records import load_records
from sgtune.study.report.records import records_of as belonging
from sgtune.study.studies import STUDIES, artifact
from sgtune.support.files import write_json


def reference_records(model):
    test = {"rmse": 0.987} if model == "pmf" else {"accuracy": 0.95, "log_loss": 0.2}
    mode = {"negative_log_posterior": -12_345.6, "gradient_norm": 78.9, "steps": 24_500, "test": test}
    mode |= {"distance": 1.23, "converged": True}
    mode["laplace_sd"] = [0.5] * 100
    blocks = BLOCKS if model == "pmf" else (model,)
    summary = {
        "n": 20,
        "sd": 0.25,
        "sd_error": 0.034,
        "r_hat_max": 1.23,
        "r_hat_p99": 1.04,
        "r_hat_median": 1.001,
        "ess_min": 12.0,
        "ess_median": 400.0,
    }
    checks = {
        "chains": 2,
        "draws": 500,
        "divergences": 3,
        "n_parameters_stuck": 0,
        "leapfrogs_per_draw": 63.0,
    }
    checks |= {"max_tree_depth_share": 0.25, "e_bfmi": [0.4, 0.5], "draws_lost": 0}
    nuts = {"diagnostics": checks, "blocks": dict.fromkeys(blocks, summary), "sd": [0.25] * 20}
    errors = {"relative_sd_error": 0.012, "xi_rel": 0.013, "xi_white": 0.014, "functional_error": 0.015}
    absent = "xi_white" if model == "pmf" else "functional_error"
    nuts["monte_carlo_error"] = {key: value for key, value in errors.items() if key != absent}
    nuts |= {"trusted": True}
    nuts["functionals"] = {name: value for name, value in summary.items() if name != "sd"}
    if model == "pmf":
        nuts["functionals"] |= {"n": 2, "mean": [3.0, 4.0], "sd": [0.3, 0.4]}
    nuts["chains"] = [provenance_of("sample_nuts")["provenance"] for _ in range(2)]
    records = {f"{model}/map": {"model": model} | mode | provenance_of("find_map")}
    if model != "bnn":
        records[f"{model}/nuts"] = {"model": model} | nuts | provenance_of("combine_nuts")
    return records


def make_files(replicates=3, models=MODELS, tunings=2):
    """The files of a run: kind -> name of the file -> its contents."""
    kinds = ("cost", "tuning", "evaluation", "screen", "regret", "clocks", "estimates", "widths", "reference")
    kinds = (*kinds, "horizons", "ladder")
    files = {kind: {} for kind in kinds}
    config = CONFIG | {"models": list(models)}
    files[""] = {"settings": {"run": "quick", "configuration": config} | provenance_of("record_settings")}
    files["ladder"] = {str(dimension): ladder_record(dimension) for dimension in (10, 100)}
    files[""]["sensitivity"] = sensitivity_record()
    for model in models:
        rng = np.random.default_rng(MODELS.index(model))
        for sampler in SAMPLERS:
            name = f"{model}/{sampler}"
            tuning = files["tuning"][name] = tuning_record(model, sampler, rng, tunings)
            files["evaluation"][name] = evaluation_record(tuning, rng, replicates)
            files["screen"][name] = {"model": model, "sampler": sampler} | provenance_of("screen_grid")
            files["regret"][name] = regret_record(tuning, rng)
        files["clocks"][model] = clocks_record(files["tuning"][f"{model}/sgld"], rng)
        files["cost"][model] = cost_record(model, rng)
        files["estimates"][model] = estimate_record(model)
        files["reference"] |= reference_records(model)
        if model != "bnn":
            files["widths"][model] = width_record(model)
        if model == "logistic":
            files["horizons"][model] = horizons_record(model)
    return files


def write_files(files, folder):
    """Write the files, including the paper's numbers and settings, and return their paths."""
    paths = [PUBLISHED, PUBLISHED.with_name("paper_settings.yaml")]
    for kind, named in files.items():
        for name, record in named.items():
            paths.append(folder / kind / f"{name}.json")
            write_json(paths[-1], record)
    return paths


def records_of(files):
    """The records of tables and figures: the files written and read back."""
    with TemporaryDirectory() as folder:
        return load_records(write_files(files, Path(folder)), STUDIES["mamba"].kinds)


def make_records(replicates=3, models=MODELS, tunings=2):
    return records_of(make_files(replicates, models, tunings))


def make(name, records):
    """The cells of a table, or the figure, of the main study."""
    about = artifact(name)
    module, _, function = about.maker.partition(":")
    maker = getattr(import_module(f"sgtune.study.mamba.{module}"), function)
    return maker(belonging(records, about), **about.options)


def record_of(records, model, sampler, tuner, kind="evaluation"):
    """The first of these records; for a tuner's runs this is replicate 0."""
    whose = (model, sampler, tuner)
    return next(one for one in records[kind] if (one["model"], one["sampler"], one["tuner"]) == whose)


def cells_by(cells, *fields):
    """The cells of a table for one tuner, rule or step, by these fields."""
    return {tuple(getattr(cell, field) for field in fields): cell for cell in cells}
