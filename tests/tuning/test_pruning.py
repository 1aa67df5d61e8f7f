"""Fewer points, and scores of a subset of the data, keep the same arms as all points and all data."""

import numpy as np
import pytest
from config_files import raw_config
from small_models import small_logistic_model

import sgtune.study
from sgtune.sampling.budget import CostTable
from sgtune.study.config.sections import model_settings
from sgtune.study.posteriors import bnn, pmf
from sgtune.tuning import Grid, Halving, Settings, stein

pytestmark = pytest.mark.optimised

# Seconds of a step, measured on two cores. With a fixed table the outcome does not depend on this machine.
COST = CostTable({("sgld-cv", 800_000, None): 4e-3, ("sgld-cv", 80_000, None): 1e-3, ("sgld-cv", 8_000, None): 1e-4,
                  ("sgld-cv", 800, None): 1.4e-5})  # fmt: skip
# With these costs the cap on points is reached in every rung of the network, and in later rungs of the factorisation.
SMALL_COSTS = {"bnn": {1: 3e-3, 10: 6e-4, 100: 3e-4}, "pmf": {1: 1e-3, 10: 2e-4, 100: 1e-4}}
EVERY_POINT = 10**6


def survivors_of(result):
    """The arms left after each rung."""
    kept = result.rungs[~result.rungs.pruned]
    return [set(map(tuple, rung[["step_size", "batch_size"]].to_numpy())) for _, rung in kept.groupby("rung")]


@pytest.mark.slow
def test_capped_points_and_subset_scores_prune_as_full_scores_on_every_thinned_point(logistic_data_dir):
    model = sgtune.study.load_model("logistic", logistic_data_dir)

    def survivors(**settings):
        result = sgtune.tune(
            model,
            "sgld-cv",
            tuner="mamba-ksd",
            budget=sgtune.Budget(seconds=0.04),
            cost=COST,
            settings=Settings(**settings),
        )
        return survivors_of(result)

    full = survivors(points=EVERY_POINT, score_fraction=1.0)
    cheap = survivors(points=200, score_fraction=0.1)
    assert [len(rung) for rung in full] == [18, 6, 2]
    # One arm in six may swap with another arm whose discrepancy is the same within its noise.
    for exact, approximate in zip(full[:2], cheap[:2], strict=True):
        assert len(exact & approximate) >= len(exact) - max(1, len(exact) // 6)
    assert full[2] & cheap[2]


def excess_of(result):
    """The value of each arm over the largest value of the survivors, in the arm's last rung."""
    excess = {}
    for _, rung in result.rungs.groupby("rung"):
        values = rung.set_index(["step_size", "batch_size"])["discrepancy"]
        cut = values[~rung["pruned"].to_numpy()].max()
        excess |= (values.fillna(np.inf) / cut).to_dict()
    return excess


def factorisation():
    train, test = pmf.split_u1(pmf.simulate(1_000))
    first = np.array([1, 1, 0, 0])
    n_users, n_items = (int(column.max()) for column in train[:, :2].T)
    return pmf.from_arrays(train - first, test - first, n_users=n_users, n_items=n_items)


def network():
    images = bnn.simulate(500)
    return bnn.from_arrays(images["train_images"], images["train_labels"], n_hidden=10)


@pytest.mark.slow
@pytest.mark.parametrize("make", [factorisation, network])
def test_points_and_scores_of_the_large_models_prune_as_all_points_do(make):
    """MAMBA-KSD on small versions of the large models, with the settings of the paper run (config/paper.yaml).

    The same arms survive in every rung, except ties: an arm that only one of the two races keeps is pruned by the other
    within 30% of its cut: three standard errors of the KSD of 15 points, which are 2% to 10%.
    """
    model = make()
    section = model_settings(raw_config("paper"), model.name)["mamba"]
    costs = SMALL_COSTS[model.name].items()
    cost = CostTable({("sgld", model.n_data // part, None): seconds for part, seconds in costs})

    def race(**settings):
        return sgtune.tune(
            model,
            "sgld",
            tuner="mamba-ksd",
            budget=sgtune.Budget(seconds=0.5),
            cost=cost,
            settings=Settings(
                log10_step_sizes=tuple(np.arange(-2, -8, -1.0)), batch_fractions=(1.0, 0.1, 0.01), **settings
            ),
        )

    full = race(points=EVERY_POINT, score_fraction=1.0)
    cheap = race(points=section["points"], score_fraction=section["score_fraction"])
    assert cheap.rungs["points"].max() < 0.5 * full.rungs["points"].max()
    kept = survivors_of(full)
    assert [len(rung) for rung in kept] == [6, 2]
    for exact, approximate in zip(kept, survivors_of(cheap), strict=True):
        assert all(excess_of(full)[arm] < 1.3 for arm in approximate - exact)
        assert all(excess_of(cheap)[arm] < 1.3 for arm in exact - approximate)


SMALL_COST = CostTable({("sgld-cv", n, None): cost for n, cost in ((2_000, 1e-4), (20, 2e-5))})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "budget"),
    [("sgld", sgtune.Budget(steps=1_000)), ("sgld-cv", sgtune.Budget(seconds=0.05))],
)
def test_the_cap_on_points_prunes_as_all_points_do(sampler, budget):
    """The winner is the same, and other differences are ties: within 20% of the cut when judged on every point."""

    model = small_logistic_model()

    def run(points):
        judge, grid = stein("ksd", "laplace", 1.0), Grid(batch_fractions=(1.0, 0.01))
        tuner = Halving(judge, grid=grid, points=points, thin=1)
        return sgtune.tune(model, sampler, tuner=tuner, budget=budget, cost=SMALL_COST)

    capped, full = run(50), run(10**6)
    assert capped.rungs["points"].max() == 450
    assert (full.rungs["points"] == full.rungs["steps"]).all()
    assert capped.best == full.best
    for number in full.rungs["rung"].unique():
        few, every = (
            result.rungs[result.rungs["rung"] == number].set_index(["step_size", "batch_size"])
            for result in (capped, full)
        )
        cut = every["discrepancy"][~every["pruned"]].max()
        others = set(few.index[~few["pruned"]]) - set(every.index[~every["pruned"]])
        # With equally many steps for every arm even ties are decided in the same way.
        assert not others or budget.seconds
        assert all(every["discrepancy"].get(arm, np.inf) < 1.2 * cut for arm in others)
