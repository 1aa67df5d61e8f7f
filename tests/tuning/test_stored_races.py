"""Every tuner's choices on a small posterior equal the recorded ones: refactored code must make the same choices.

The record holds arms and their order, no floats. After an intended change of choices, write it again with
PYTHONPATH=tests python tests/tuning/test_stored_races.py
"""

import json
from pathlib import Path

import pytest
from small_models import on_grid, small_logistic_model

from sgtune import Budget, CostTable, tune
from sgtune.tuning import TUNERS, Grid

STORED = Path(__file__).with_name("stored_races.json")
SAMPLERS = ("sgld", "sgld-cv", "sghmc", "sghmc-cv", "sgnht", "sgnht-cv")
GRID = Grid((-1.0, -2.0, -3.0, -4.0, -5.0, -6.0), batch_fractions=(1.0, 0.1), n_leapfrogs=(2, 4))
# A minibatch step costs a tenth of a full-batch step, so that equal seconds buy different numbers of steps.
COST = CostTable(
    {
        (sampler, batch_size, n_leapfrog): 1e-5 * (n_leapfrog or 1) * (10 if batch_size == 1_000 else 1)
        for sampler in SAMPLERS
        for batch_size in (1_000, 100)
        for n_leapfrog in ((2, 4) if sampler.startswith("sghmc") else (None,))
    }
)


def race(tuner: str, sampler: str) -> dict:
    """The chosen arm, and the survivors of each rung in the order of the grid."""
    model = small_logistic_model(n_data=1_000, dimension=3, seed=5)
    budget = Budget(steps=400) if tuner in ("grid", "heuristic") else Budget(seconds=0.02)
    own = on_grid(tuner, GRID, n_leapfrog=4)
    result = tune(model, sampler, tuner=own, budget=budget, seed=3, cost=COST, preconditioner="none")
    survivors: dict[str, list] = {}
    for row in result.rows:
        if not row["pruned"]:
            arm = [f"{row['step_size']:.3g}", row["batch_size"], row["n_leapfrog"]]
            survivors.setdefault(f"rung {row['rung']}", []).append(arm)
    best = result.best
    return {"best": [f"{best.step_size:.3g}", best.batch_size, best.n_leapfrog], **survivors}


def cases() -> list[tuple[str, str]]:
    """Every tuner with one sampler, and the first tuner with all samplers."""
    pairs = [(tuner, SAMPLERS[number % len(SAMPLERS)]) for number, tuner in enumerate(TUNERS)]
    return list(dict.fromkeys([*pairs, *((next(iter(TUNERS)), sampler) for sampler in SAMPLERS)]))


@pytest.mark.parametrize(("tuner", "sampler"), cases())
def test_the_race_is_the_one_on_record(tuner, sampler):
    assert race(tuner, sampler) == json.loads(STORED.read_text("utf-8"))[f"{tuner} {sampler}"]


if __name__ == "__main__":
    made = {f"{tuner} {sampler}": race(tuner, sampler) for tuner, sampler in cases()}
    STORED.write_text(json.dumps(made, indent=1) + "\n")
