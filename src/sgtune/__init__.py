"""sgtune: Stein-guided tuning for stochastic-gradient MCMC.

model = sgtune.define_model("normal", log_prior=..., log_likelihood=..., data=..., init=...)
chain = sgtune.sample(model, "sgld-cv", step_size=1e-6, batch_size=800, budget=sgtune.Budget(steps=5000))
result = sgtune.tune(model, "sgld-cv", budget=sgtune.Budget(seconds=1.0))
run = sgtune.tune_and_sample(model, "sgld-cv", budget=sgtune.Budget(seconds=10.0), chains=4)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgtune import metrics as metrics
    from sgtune import samplers as samplers
    from sgtune import stein as stein
    from sgtune import tuning as tuning
    from sgtune.bridges.blackjax_kernels import from_blackjax as from_blackjax
    from sgtune.bridges.numpyro_models import from_numpyro as from_numpyro
    from sgtune.model import Model as Model
    from sgtune.model import define_model as define_model
    from sgtune.model import from_log_densities as from_log_densities
    from sgtune.model.derived import localise as localise
    from sgtune.model.derived import temper as temper
    from sgtune.model.preconditioner import Preconditioner as Preconditioner
    from sgtune.model.rows import RowSource as RowSource
    from sgtune.samplers import gradients as gradients
    from sgtune.sampling.budget import Budget as Budget
    from sgtune.sampling.budget import CostTable as CostTable
    from sgtune.sampling.chain import Chain as Chain
    from sgtune.sampling.chain import Chains as Chains
    from sgtune.sampling.chain import sample as sample
    from sgtune.sampling.diagnosis import Diagnosis as Diagnosis
    from sgtune.sampling.diagnosis import diagnose as diagnose
    from sgtune.support.axes import Arm as Arm
    from sgtune.support.errors import InputError as InputError
    from sgtune.support.progress import show_progress as show_progress
    from sgtune.tuning import TuningResult as TuningResult
    from sgtune.tuning import calibrate_cost as calibrate_cost
    from sgtune.tuning import tune as tune
    from sgtune.tuning.run import tune_and_sample as tune_and_sample

__version__ = "0.1.0"

# Names are imported when first used: a job that only reads files does not wait for JAX.
_HOME = {
    "Arm": "sgtune.support.axes",
    "Budget": "sgtune.sampling.budget",
    "Chain": "sgtune.sampling.chain",
    "Chains": "sgtune.sampling.chain",
    "CostTable": "sgtune.sampling.budget",
    "Diagnosis": "sgtune.sampling.diagnosis",
    "InputError": "sgtune.support.errors",
    "Model": "sgtune.model",
    "Preconditioner": "sgtune.model.preconditioner",
    "RowSource": "sgtune.model.rows",
    "TuningResult": "sgtune.tuning",
    "calibrate_cost": "sgtune.tuning",
    "define_model": "sgtune.model",
    "from_blackjax": "sgtune.bridges.blackjax_kernels",
    "diagnose": "sgtune.sampling.diagnosis",
    "from_log_densities": "sgtune.model",
    "from_numpyro": "sgtune.bridges.numpyro_models",
    "gradients": "sgtune.samplers.gradients",
    "localise": "sgtune.model.derived",
    "metrics": "sgtune.metrics",
    "sample": "sgtune.sampling.chain",
    "samplers": "sgtune.samplers",
    "show_progress": "sgtune.support.progress",
    "stein": "sgtune.stein",
    "temper": "sgtune.model.derived",
    "tune": "sgtune.tuning",
    "tune_and_sample": "sgtune.tuning.run",
    "tuning": "sgtune.tuning",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sgtune' has no attribute {name!r}")
    home = import_module(_HOME[name])
    return home if home.__name__.endswith(f".{name}") else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
