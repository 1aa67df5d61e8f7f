"""On the real posterior: fewer points and a tenth of the data keep the arms that all would keep."""

import pytest

import sgtune
from sgtune.budget import CostTable
from sgtune.tuning import Settings

# Seconds a step, as measured on two cores: with a fixed table the outcome does not depend on this machine.
COST = CostTable({("sgld-cv", 800_000, None): 4e-3, ("sgld-cv", 80_000, None): 1e-3, ("sgld-cv", 8_000, None): 1e-4,
                  ("sgld-cv", 800, None): 1.4e-5})  # fmt: skip
EVERY_POINT = 10**6


@pytest.mark.slow
@pytest.mark.parametrize("tuner", ["mamba-ksd", "mamba-ksd-scaled"])
def test_capped_points_and_subset_scores_prune_as_full_scores_on_every_thinned_point(
    logistic_data_dir, tuner
):
    model = sgtune.load_model("logistic", logistic_data_dir)

    def survivors(**settings):
        result = sgtune.tune(
            model,
            "sgld-cv",
            tuner=tuner,
            budget=sgtune.Budget(seconds=0.3),
            cost=COST,
            settings=Settings(**settings),
        )
        kept = result.rungs[~result.rungs.pruned]
        return [
            set(map(tuple, rung[["step_size", "batch_size"]].to_numpy())) for _, rung in kept.groupby("rung")
        ]

    full = survivors(points=EVERY_POINT, score_fraction=1.0)
    cheap = survivors(points=200, score_fraction=0.1)
    assert [len(rung) for rung in full] == [18, 6, 2]
    # One arm in six may change places with another whose discrepancy is the same within its noise.
    for exact, approximate in zip(full[:2], cheap[:2], strict=True):
        assert len(exact & approximate) >= len(exact) - max(1, len(exact) // 6)
    assert full[2] & cheap[2]
