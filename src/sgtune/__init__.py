"""sgtune: Stein-guided tuning for stochastic-gradient MCMC.

model = sgtune.load_model("logistic", data_dir="results/quick/data")
chain = sgtune.sample(model, "sgld-cv", step_size=1e-6, batch_size=800, budget=sgtune.Budget(steps=5000))
result = sgtune.tune(model, "sgld-cv", budget=sgtune.Budget(seconds=1.0))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgtune import metrics, samplers, stein, tuning
    from sgtune.model import Model, define_model
    from sgtune.model.derived import temper
    from sgtune.samplers import gradients
    from sgtune.sampling.budget import Budget, CostTable
    from sgtune.sampling.chain import Chain, sample
    from sgtune.study.posteriors import load_model
    from sgtune.support.axes import Arm
    from sgtune.support.errors import InputError
    from sgtune.tuning import TuningResult, calibrate_cost, tune

__version__ = "0.1.0"

# Names are imported when first used: a job that only reads files does not wait for JAX.
_HOME = {
    "Arm": "sgtune.support.axes",
    "Budget": "sgtune.sampling.budget",
    "Chain": "sgtune.sampling.chain",
    "CostTable": "sgtune.sampling.budget",
    "InputError": "sgtune.support.errors",
    "Model": "sgtune.model",
    "TuningResult": "sgtune.tuning",
    "calibrate_cost": "sgtune.tuning",
    "define_model": "sgtune.model",
    "gradients": "sgtune.samplers.gradients",
    "load_model": "sgtune.study.posteriors",
    "metrics": "sgtune.metrics",
    "sample": "sgtune.sampling.chain",
    "samplers": "sgtune.samplers",
    "stein": "sgtune.stein",
    "temper": "sgtune.model.derived",
    "tune": "sgtune.tuning",
    "tuning": "sgtune.tuning",
}

__all__ = [
    "Arm",
    "Budget",
    "Chain",
    "CostTable",
    "InputError",
    "Model",
    "TuningResult",
    "calibrate_cost",
    "define_model",
    "gradients",
    "load_model",
    "metrics",
    "sample",
    "samplers",
    "stein",
    "temper",
    "tune",
    "tuning",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sgtune' has no attribute {name!r}")
    home = import_module(_HOME[name])
    return home if home.__name__.endswith(f".{name}") else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
