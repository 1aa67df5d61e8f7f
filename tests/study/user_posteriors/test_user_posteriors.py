"""The study of posteriors of users: moments by NUTS, ratios to the best arm, and arms of the finer grid."""

import numpy as np
import pytest

from sgtune.study.user_posteriors.cases import CASES, case_model
from sgtune.study.user_posteriors.races import Truth, _by_shape
from sgtune.study.user_posteriors.tables import posteriors_errors, posteriors_regret, preconditioned
from sgtune.tuning.grid import fitted_step_sizes


@pytest.mark.parametrize("name", CASES)
def test_each_posterior_is_a_model_with_a_finite_start(name):
    model = case_model(name)
    assert 442 <= model.n_data <= 50_000
    assert 4 <= model.dimension <= 650


def test_exact_draws_have_no_error_though_the_reference_is_short():
    """Along the eigenvectors of the same 200 draws, sds of 50 parameters would be wrong by about a quarter."""
    rng = np.random.default_rng(0)
    half = np.tril(rng.normal(size=(50, 50))) + 3 * np.eye(50)
    chains = rng.normal(size=(3, 200, 50)) @ half.T + 1
    truth = Truth.of_chains(chains)
    errors = truth.errors((rng.normal(size=(20_000, 50)) @ half.T + 1).astype(np.float32))
    # Of 400 reference draws and 20,000 others: each sd has the relative error sqrt(1/800 + 1/40000).
    assert errors["xi_white"] == pytest.approx(np.sqrt(1 / 800 + 1 / 40_000), rel=0.4)
    # The parameters' errors are correlated.
    assert errors["mean_error"] < 3 * np.sqrt(1 / 600 + 1 / 20_000)
    assert not errors["unstable"]


def test_errors_are_those_that_were_made():
    rng = np.random.default_rng(1)
    truth = Truth.of_chains(rng.normal(size=(2, 40_000, 3)))
    draws = rng.normal(size=(40_000, 3)) * 1.5 + [0, 0, 2]
    errors = truth.errors(draws.astype(np.float32))
    assert errors["xi_white"] == pytest.approx(0.5, rel=0.05)
    assert errors["mean_error"] == pytest.approx(2 / np.sqrt(3), rel=0.02)
    assert (errors["parameter"], errors["largest_mean_error"]) == (2, pytest.approx(2, rel=0.02))
    assert truth.errors(20 * draws)["unstable"]
    assert truth.errors(np.full((5, 3), np.nan))["unstable"]


def test_the_finer_grid_has_the_default_step_sizes_and_those_between():
    model = case_model("counts")
    groups = _by_shape(model, "sgld-cv", 5e6, 4.0)
    assert [group[0].batch_size for group in groups] == [10_000, 1_000, 100, 10]
    sizes = np.log10([arm.step_size for arm in groups[0]])
    np.testing.assert_allclose(sizes[::2], fitted_step_sizes("sgld-cv", 1.0, 4.0), rtol=1e-6)
    np.testing.assert_allclose(np.diff(sizes), -1 / 8, rtol=1e-5)
    assert [len(group) for group in _by_shape(model, "sgld-cv", 5e4, 4.0)] == [len(groups[0])] * 3


def run(tuner="mamba", coordinates="rounds", xi=0.2, **more):
    found = {"tuner": tuner, "coordinates": coordinates, "refused": "", "arm": {}, "unstable": xi is None}
    found |= {"xi_white": xi, "mean_error": 0.1, "largest_mean_error": 0.3, "spent": 2_000_000}
    return found | more


def record(case, *runs, best=(0.1, 0.1)):
    finals = [run(xi=xi) for xi in best]
    return {"case": case, "sampler": "sgld-cv", "runs": list(runs), "best": {"runs": finals}}


def test_ratios_are_to_the_best_arm_and_their_geometric_mean_is_over_what_is_stable():
    refused = run(arm=None, xi=None, refused="no mode")
    races = [
        record("groups", run(xi=0.2), run(xi=0.6), best=(0.08, 0.12)),
        record("counts", run(xi=0.05), run(xi=0.07)),
        record("cancer", run(xi=None), run(xi=0.3)),
        record("digits", refused, refused),
    ]
    groups, counts, cancer, digits, every = posteriors_regret({"races": races})
    # Means 0.4 and 0.1, standard errors 0.2 and 0.02.
    assert (groups.value, groups.se) == (pytest.approx(4), pytest.approx(4 * np.hypot(0.5, 0.2)))
    assert counts.value == 1
    assert (cancer.value, cancer.finite, cancer.replicates) == (pytest.approx(3), 1, 2)
    assert (digits.value, digits.missing) == (None, "refused")
    assert (every.model, every.value, every.finite, every.replicates) == ("all", pytest.approx(2), 2, 4)
    # Chains of the best arm that left do not count; without any there is no ratio.
    some, none = record("groups", run(xi=0.4), best=(0.1, None)), record("groups", run(), best=(None,))
    first, second, _ = posteriors_regret({"races": [some, none]})
    assert (first.value, second.value, second.missing) == (pytest.approx(4), None, "unstable")
    # Of the default: its errors, and what left.
    own = record("groups", run(), run(xi=None), run("theory", "laplace", 9.0), best=(0.1,) * 3)
    [*others, unstable] = posteriors_errors({"races": [own]})
    assert [cell.replicates for cell in others] == [3, 2, 2, 2, 2]
    shown = {cell.metric: cell.value for cell in others}
    names = ("xi_white_x100", "best_xi_white_x100", "spent_x1e-6")
    assert [shown[name] for name in names] == pytest.approx([20, 10, 2])
    assert (unstable.value, unstable.replicates) == (1, 2)


def test_the_better_coordinates_are_marked_by_two_standard_errors():
    runs = [
        {"sampler": sampler, "coordinates": coordinates, "losses": {"xi_white": xi + noise}}
        for sampler, xis in {"sgld": (0.2, 0.1), "sgnht": (0.2, 0.19)}.items()
        for coordinates, xi in zip(("none", "laplace"), xis, strict=True)
        for noise in (-0.01, 0, 0.01)
    ]
    cells = preconditioned({"preconditioned": [{"model": "logistic", "runs": runs}]})
    assert [(cell.sampler, cell.detail) for cell in cells if cell.best] == [("sgld", "laplace")]
    lost = {"model": "logistic", "monte_carlo_error": {}, "blocks": {}, "trusted": False}
    records = {"preconditioned": [{"model": "logistic", "runs": runs}], "reference": [lost]}
    assert not any(cell.best for cell in preconditioned(records))
