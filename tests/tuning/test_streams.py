"""The random streams of races: tuners share them, replicates and final chains have their own."""

from dataclasses import replace
from threading import Barrier, get_ident

import numpy as np
import pytest
from small_models import small_logistic_model

from sgtune import Budget, sample, tune
from sgtune.sampling.lockstep import Lockstep
from sgtune.tuning import Grid, Halving, Judge, race
from sgtune.tuning.judges import Judgement

GRID = Grid(log10_step_sizes=(-3.0, -4.0, -5.0), batch_fractions=(0.1,))
STEPS = 40


@pytest.fixture(scope="module")
def model():
    return small_logistic_model(n_data=1_000, dimension=3, seed=5)


def draws_seen(model, *, prefer, **options) -> tuple[dict, list[np.ndarray]]:
    """The choice of a race whose judge prefers the arm with index ``prefer``, and all draws that the judge saw."""
    seen = []

    def metric(model, arms):
        seen.append([np.array(arm.points) for arm in arms])
        return Judgement([float(place != prefer) for place in range(len(arms))], 0.0, 0.0, 0)

    tuner = Halving(judge=Judge(lambda seed: metric), grid=GRID, thin=1, points=1_000)
    result = tune(model, "sgld", tuner=tuner, budget=Budget(steps=STEPS), **options)
    return dict(result.best), seen[0]


def test_two_tuners_of_a_seed_see_the_same_chains(model):
    best, one = draws_seen(model, prefer=0, seed=2)
    other_best, other = draws_seen(model, prefer=2, seed=2)
    assert best != other_best
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("options", [{"seed": 3}, {"seed": 2, "replicate": 1}])
def test_another_seed_or_replicate_is_another_race(model, options):
    _, one = draws_seen(model, prefer=0, seed=2)
    _, other = draws_seen(model, prefer=0, **options)
    for mine, theirs in zip(one, other, strict=True):
        assert (mine != theirs).any(axis=1).all()


def test_a_chain_of_the_chosen_arm_is_no_replay_of_the_race(model):
    """The winning draws are selected among many: a final chain that repeats them would be too good by selection."""
    best, (winner, *_) = draws_seen(model, prefer=0, seed=2)
    chain = sample(model, "sgld", **best, budget=Budget(steps=STEPS), seed=2)
    assert len(winner) == len(chain.draws)
    assert (winner != chain.draws).any(axis=1).all()


@pytest.mark.parametrize(
    ("cores", "most", "n_threads"), [(1, 8, 1), (None, 8, 1), (2, 8, 2), (3, 2, 2), (64, 8, 3)]
)
def test_ensembles_advance_on_several_cores_and_their_draws_do_not_depend_on_it(
    model, monkeypatch, cores, most, n_threads
):
    """Each of three arms is an ensemble of its own. The threads wait for each other, so that all must take part."""
    alone = replace(model, max_lockstep=1)
    monkeypatch.setattr(race, "MOST_THREADS", 1)
    _, one_by_one = draws_seen(alone, prefer=0, seed=2)
    monkeypatch.setattr(race, "MOST_THREADS", most)
    together, seen, advance = Barrier(n_threads), set(), Lockstep.advance_to

    def meeting(ensemble, *arguments):
        if get_ident() not in seen:
            seen.add(get_ident())
            together.wait(timeout=60)
        return advance(ensemble, *arguments)

    monkeypatch.setattr(race, "cores", lambda: cores)
    monkeypatch.setattr(Lockstep, "advance_to", meeting)
    _, at_once = draws_seen(alone, prefer=0, seed=2)
    assert len(seen) == n_threads
    for mine, theirs in zip(one_by_one, at_once, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("place", [0, -1])
def test_an_error_in_one_ensemble_stops_the_others(model, monkeypatch, error, place):
    """One arm fails when all have started. The others wait for this, and then do not advance."""
    advance, started, advanced = Lockstep.advance_to, Barrier(3), []

    def failing(ensemble, n_steps, kept, stop):
        started.wait(timeout=60)
        if np.isclose(ensemble.arms[0].step_size, 10.0 ** GRID.log10_step_sizes[place]):
            raise error("no room for draws")
        assert stop.wait(timeout=60)
        advanced.append(advance(ensemble, n_steps, kept, stop))

    monkeypatch.setattr(race, "cores", lambda: 3)
    monkeypatch.setattr(Lockstep, "advance_to", failing)
    with pytest.raises(error, match="no room"):
        draws_seen(replace(model, max_lockstep=1), prefer=0, seed=2)
    assert not advanced
