"""Progress bars: counts that add up, where they are shown, and nothing in a log."""

import io
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tqdm.auto
from small_models import gaussian_model

import sgtune
from sgtune import Budget
from sgtune.mode.find import map_result
from sgtune.sampling import lockstep
from sgtune.support import progress
from sgtune.support.progress import progress_bar, tracked
from sgtune.tuning import Grid, Halving

NORMAL = gaussian_model(np.eye(2), np.zeros(2))
ARM = {"step_size": 0.1, "batch_size": 4, "budget": Budget(steps=5_000)}


@pytest.fixture
def bars(monkeypatch):
    """The name, total and count of every bar that has ended."""
    ended = []

    class Noted(tqdm.std.tqdm):
        def close(self):
            if not getattr(self, "is_noted", False):
                self.is_noted = True
                ended.append((self.desc.removesuffix(": "), self.total, self.n))
            super().close()

    monkeypatch.setattr(tqdm.auto, "tqdm", Noted)
    sgtune.show_progress(True)
    yield ended
    sgtune.show_progress(None)


def test_by_default_only_a_terminal_or_a_notebook_has_bars(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not progress._is_shown()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert progress._is_shown()
    sgtune.show_progress(False)
    assert not progress._is_shown()
    sgtune.show_progress(None)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    assert progress._is_shown()


def test_a_bar_moves_while_a_chain_runs_and_changes_no_draw(bars, monkeypatch):
    """However few draws are kept: a long run is 64 calls, a short one 1 + 2 + 4 + ... of its 64 parts."""
    draws, updates, update = [], [], tqdm.auto.tqdm.update

    def noted(bar, n=1):
        updates.append(bar.desc)
        update(bar, n)

    monkeypatch.setattr(tqdm.auto.tqdm, "update", noted)
    for short, n_updates in ((0.0, 64), (np.inf, 7)):
        monkeypatch.setattr(lockstep, "SHORT", short)
        updates.clear()
        chain = sgtune.sample(NORMAL, "sgld", **ARM, position=np.zeros(2), kept_draws=11)
        draws.append(chain.draws)
        assert updates == ["sgld"] * n_updates
        assert bars[-1] == ("sgld", 5_000, 5_000)
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize(("dimension", "name"), [(3, "mode"), (300, "descent")])
def test_a_bar_counts_the_steps_of_the_search_for_the_mode(bars, dimension, name):
    map_result(gaussian_model(np.eye(dimension), np.zeros(dimension)))
    counts = {own: n for own, _, n in bars}
    assert counts[f"{name} of gaussian"] > 0


def test_a_bar_of_a_race_ends_at_its_budget(bars):
    tuner = Halving(grid=Grid((-3.0, -2.5, -2.0, -1.5), batch_fractions=(0.5, 1.0)))
    result = sgtune.tune(NORMAL, "sgld", budget=Budget(steps=60), tuner=tuner, rounds=1)
    (race,) = [bar for bar in bars if bar[0].startswith("race 1")]
    assert race[2] == pytest.approx(race[1], rel=0.02)
    assert race[2] == result.steps


def test_threads_share_a_bar_and_a_loop_that_is_left_ends_its_bar(bars):
    with progress_bar("many", 4_000, "steps") as done, ThreadPoolExecutor(8) as pool:
        list(pool.map(done, [1] * 4_000))
    for item in tracked(range(10), "mode", "steps"):
        if item == 3:
            break
    assert bars == [("many", 4_000, 4_000), ("mode", None, 3)]
