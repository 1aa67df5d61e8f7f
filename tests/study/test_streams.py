"""Replicates that are pooled or compared have minibatches of their own, in every experiment: with shared ones all of
them err in the same way, so that their spread is too small."""

import jax
import numpy as np
import pytest
from job_pieces import Log
from small_models import small_logistic_model

from sgtune import Arm, CostTable
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.ccadl.normal import sample_normal
from sgtune.study.experiments.evaluate import evaluate_tuned
from sgtune.study.experiments.losses import Losses, run_replicates
from sgtune.study.experiments.tune import tune_sampler
from sgtune.study.pipeline.parts import Parts
from sgtune.study.user_posteriors.races import Truth, _tuned

REPLICATES = 3
COST = CostTable({("sgld", batch_size, None): 1e-3 for batch_size in (20, 40)})
ARMS = [Arm(1e-4, 20), Arm(1e-5, 20), Arm(1e-4, 40)]
TRUTH = Truth(np.zeros(2), np.ones(2), np.eye(2), np.ones(2))
# Of the replicates of curves some have no row in a table.
CURVES = {"seconds": [0.01], "replicates": REPLICATES, "ksd_points": 0, "prediction_draws": 0}
EVALUATION = {
    **{"seconds": 0.02, "replicates": 1, "thin": 1, "ksd_points": 0, "burn_in": 0},
    **{"kept_draws": 10, "prediction_draws": 2, "curves": CURVES},
}
NORMAL = {
    **{"step_sizes": [0.01], "frictions": [1.0, 10.0], "n_data": 20, "standardised": True, "batch_size": 10},
    **{"steps": 200, "warmup": 0, "replicates": REPLICATES, "bins": 10},
}


def race(task):
    tuning = {"replicates": REPLICATES, "validation_fraction": 0}
    grids = {"log10_step_sizes": [-3, -4], "batch_fractions": [0.1]}
    grid = {"n_steps": 10, "batch_fraction": 0.1, "start_noise": 0.2, "points": 10}
    tune_sampler(task, {"grid": {"grids": grids, "tuning": tuning, "grid": grid}})


def race_posterior(task):
    section = {"gradients": 1_000, "horizon": 1_000}
    for replicate in range(REPLICATES):
        _tuned(task, TRUTH, section, "heuristic", "none", replicate)


# By experiment, the shapes of its arms: each replicate has an ensemble of each.
EXPERIMENTS = {
    "races": (race, 1),
    "evaluation": (lambda task: evaluate_tuned(task, {"grid": [ARMS[0]]}, EVALUATION), 1),
    "losses": (
        lambda task: run_replicates(
            task, ARMS, "screen", REPLICATES, losses=Losses(("log_loss",), None, 2), seconds=[0.01]
        ),
        2,
    ),
    "thermostats": (lambda task: sample_normal("sgnht", NORMAL, seed=0, parts=Parts()), 1),
    "posteriors of users": (race_posterior, 1),
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_two_replicates_share_minibatches(name, monkeypatch):
    """Arms of one replicate do: they are compared on common random numbers. An arm twice in an ensemble would be two
    replicates on the same minibatches."""
    keys, begin = [], Lockstep.begin

    def watched(ensemble, *arguments, **options):
        begin(ensemble, *arguments, **options)
        assert len(set(ensemble.arms)) == len(ensemble.arms)
        keys.append(tuple(jax.random.key_data(ensemble.minibatch_key).tolist()))

    monkeypatch.setattr(Lockstep, "begin", watched)
    run, n_shapes = EXPERIMENTS[name]
    run(Log(None, small_logistic_model(n_data=200), "sgld", cost=COST).task)
    assert len(keys) == len(set(keys)) == REPLICATES * n_shapes
