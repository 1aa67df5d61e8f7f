"""Seconds of compilation: each second counts once, for any number of programs; cold and warm times of tuning."""

from time import perf_counter

import jax
import jax.numpy as jnp
import pytest
from small_models import gaussian_model

from sgtune import Budget, tune
from sgtune.sampling import compilation, lockstep
from sgtune.sampling.lockstep import compiled_programs
from sgtune.support.machine import OPTIMISATION, compile_seconds, compiler_options, watch_compilation
from sgtune.tuning import Settings


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([], 0),
        ([(1, 2), (4, 7)], 1 + 3),
        ([(1, 5), (2, 3), (3, 5)], 4),
        ([(1, 4), (2, 6), (3, 5)], 5),
        ([(4, 7), (1, 2), (1, 2)], 4),
        ([(-3, 2), (9, 15)], 2 + 1),
        ([(-3, 15)], 10),
        ([(-3, 0), (10, 15), (20, 21)], 0),
        ([(2, 3), (3, 4)], 2),
    ],
    ids=["none", "apart", "nested", "parallel", "out of order", "clipped", "all along", "outside", "in turn"],
)
def test_a_second_counts_once_and_only_within_the_interval(monkeypatch, spans, seconds):
    """Uses the interval from 0 to 10."""
    monkeypatch.setattr(compilation, "_spans", spans)
    assert compile_seconds(0, 10) == seconds


def test_parts_of_an_interval_add_up(monkeypatch):
    monkeypatch.setattr(compilation, "_spans", [(1.0, 4.0), (2.0, 6.0), (8.0, 9.0)])
    assert (
        compile_seconds(0, 3) + compile_seconds(3, 8.5) + compile_seconds(8.5, 10)
        == compile_seconds(0, 10)
        == 6
    )


def test_a_first_call_is_seen_and_a_second_is_not():
    watch_compilation()
    watch_compilation()

    @jax.jit
    def function(x):
        return jnp.sin(x) @ jnp.cos(x).T

    def seconds(x):
        began = perf_counter()
        function(x).block_until_ready()
        ended = perf_counter()
        return compile_seconds(began, ended), ended - began

    x = jnp.ones((30, 20))
    compiling, elapsed = seconds(x)
    # Compilation takes nearly all of a first call, and at most all of it.
    assert 0.5 * elapsed < compiling <= elapsed
    assert seconds(x)[0] == 0
    assert seconds(x[:7])[0] > 0


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ("", {OPTIMISATION: 1}),
        ("--xla_dump_to=dump", {OPTIMISATION: 1}),
        (f"--xla_dump_to=dump --{OPTIMISATION}=3", {}),
    ],
)
def test_a_level_of_optimisation_that_a_user_names_is_kept(monkeypatch, flags, options):
    monkeypatch.setenv("XLA_FLAGS", flags)
    assert compiler_options() == options


def test_a_second_tune_finds_the_programs_of_the_first():
    """The second run compiles nothing, and reports the compile time of the shared programs."""
    model = gaussian_model([[2.0, -1.2], [-1.2, 1.5]], [0.5, -1.0])
    settings = Settings(log10_step_sizes=(-2.0, -3.0, -4.0, -5.0), batch_fractions=(1.0,), pruning_rate=2)
    before = compiled_programs()

    def run():
        return tune(model, "sgld", budget=Budget(steps=50), settings=settings).seconds

    first, second = run(), run()
    for seconds in (first, second):
        assert seconds["total"] == pytest.approx(seconds["warm"] + seconds["compilation"])
    made = compiled_programs() - before
    assert len(made) == 2, "four abreast, and two of them in the second rung"
    programs = sum(lockstep._seconds_to_compile[shape] for shape in made)
    assert first["shared_compilation"] == 0
    assert 0 < 0.9 * programs < first["compilation"]
    assert second["shared_compilation"] == pytest.approx(programs)
    assert second["compilation"] < 0.1 * first["compilation"]
