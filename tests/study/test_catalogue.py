"""One entry and one module add a sampler, a tuner or a model, and change no existing result."""

import sys
from types import ModuleType

import numpy as np
import pytest
from config_files import valid
from small_models import gaussian_model, small_logistic_model

import sgtune.study
from sgtune import Budget, samplers, tuning
from sgtune.study import catalogue
from sgtune.study.catalogue import SamplerEntry, TunerEntry
from sgtune.study.config.sections import SECTIONS, fingerprint, settings_of
from sgtune.study.experiments.tune import tuning_arguments
from sgtune.study.pipeline.plan import studied, tuners_of
from sgtune.study.report.style import tuner_style


def prints() -> dict:
    """The fingerprint of every result of the default run."""
    config = valid()
    kinds = set(SECTIONS) - {"tuning"}
    found = {(kind, model): settings_of(config, kind, model) for kind in kinds for model in config["models"]}
    found |= {
        ("tuning", model, tuner): settings_of(config, "tuning", model, tuner)
        for model, _, tuner in studied(config)
    }
    return {result: fingerprint(settings) for result, settings in found.items()}


@pytest.fixture(autouse=True)
def nothing_else_changes(monkeypatch):
    """While the new entry is still there: what is undone after this is what `monkeypatch` has changed."""
    before = prints()
    yield
    assert prints() == before


def test_a_sampler_is_an_entry_and_a_module(monkeypatch):
    monkeypatch.setitem(samplers.SAMPLERS, "toy", samplers.SAMPLERS["sgld"])
    monkeypatch.setitem(catalogue.SAMPLERS, "toy-cv", SamplerEntry("Toy-CV"))
    model = gaussian_model([[2.0, -1.2], [-1.2, 1.5]], [0.5, -1.0], n_data=2_000)
    chain = sgtune.sample(model, "toy-cv", step_size=0.01, batch_size=400, budget=Budget(steps=200))
    assert np.isfinite(chain.positions).all()
    two_arms = tuning.Halving(grid=tuning.Grid((-2, -3), batch_fractions=(0.1,)))
    assert sgtune.tune(model, "toy", budget=Budget(steps=20), tuner=two_arms).best.step_size > 0
    assert ("logistic", "toy-cv", "grid") in studied(valid(samplers=["toy-cv"]))


def test_a_tuner_is_an_entry_and_a_module(monkeypatch):
    monkeypatch.setitem(tuning.TUNERS, "toy", tuning.Halving(tuning.stein("fssd"), thin=2))
    monkeypatch.setitem(catalogue.TUNERS, "toy", TunerEntry("Toy", "mamba", ("#123456", "*", "-")))
    two_arms = {"log10_step_sizes": [-3, -4], "batch_fractions": [0.1]}
    config = valid(tuners=["toy"], grids__logistic=two_arms)
    assert tuners_of(config, "logistic", "sgld") == ["toy"]
    arguments = tuning_arguments(settings_of(config, "tuning", "logistic", "toy"), "toy")
    assert arguments["budget"] == Budget(seconds=config["mamba"]["seconds"])
    result = sgtune.tune(small_logistic_model(), "sgld", **arguments | {"budget": Budget(steps=20)})
    assert result.best.step_size > 0
    assert (tuner_style("toy")["color"], tuner_style("toy")["label"]) == ("#123456", "Toy")


def test_a_model_is_an_entry_and_a_module(monkeypatch, tmp_path):
    module = ModuleType("toy_model")
    module.load = lambda data_dir: small_logistic_model()
    monkeypatch.setitem(sys.modules, "toy_model", module)
    entry = catalogue.MODELS["logistic"]._replace(loader="toy_model:load")
    monkeypatch.setitem(catalogue.MODELS, "toy", entry)
    assert sgtune.study.load_model("toy", tmp_path).n_data == 2_000
    config = valid()
    config["data"]["toy"], config["grids"]["toy"] = {}, config["grids"]["logistic"]
    assert settings_of(config, "tuning", "toy", "grid")["data"] == {"toy": {}}
