"""Seconds of compilation: each second counts once, for any number of programs; cold and warm times of tuning."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_models import gaussian_model, tune

from sgtune import Budget, define_model
from sgtune import tune as tune_by_default
from sgtune.sampling import lockstep
from sgtune.sampling.lockstep import compiled_programs
from sgtune.support import machine
from sgtune.support.machine import compile_seconds
from sgtune.tuning import Grid, Halving


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        *(([], 0), ([(1, 2), (4, 7)], 1 + 3), ([(1, 5), (2, 3), (3, 5)], 4), ([(1, 4), (2, 6), (3, 5)], 5)),
        *(([(4, 7), (1, 2), (1, 2)], 4), ([(-3, 2), (9, 15)], 2 + 1), ([(-3, 15)], 10)),
        *(([(-3, 0), (10, 15), (20, 21)], 0), ([(2, 3), (3, 4)], 2)),
    ],
)
def test_a_second_counts_once_and_only_within_the_interval(monkeypatch, spans, seconds):
    """Of spans apart, nested, parallel, out of order, clipped and outside, in the interval from 0 to 10."""
    monkeypatch.setattr(machine, "_spans", spans)
    assert compile_seconds(0, 10) == seconds


def test_a_second_tune_finds_the_programs_of_the_first():
    """The second run compiles nothing, and reports the compile time of the shared programs."""
    model = gaussian_model([[2.0, -1.2], [-1.2, 1.5]], [0.5, -1.0])
    tuner = Halving(pruning_rate=2, grid=Grid((-2.0, -3.0, -4.0, -5.0), batch_fractions=(1.0,)))
    before = compiled_programs()

    def run():
        return tune(model, "sgld", budget=Budget(steps=50), tuner=tuner).seconds

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


def test_an_option_that_the_compiler_does_not_know_is_left_out(monkeypatch):
    monkeypatch.setattr(machine, "EMITTERS", "xla_no_such_option")
    machine._quick_options.cache_clear()
    try:
        assert int(machine.quick_jit(lambda x: x + 1)(1)) == 2
        assert machine._quick_options() == machine.compiler_options()
    finally:
        machine._quick_options.cache_clear()


MOST_PROGRAMS = 13
"""That the first `tune` of a small model compiles, of which six have the model's functions: its values with scores, the
Hessians of all rows and of a few, the sampler, stochastic scores and, where theory is asked, three more."""


def test_a_first_tune_compiles_few_programs():
    compiled = []

    def note(event, seconds, fun_name="", **facts):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(fun_name)

    rng = np.random.default_rng(0)
    x = rng.standard_normal((2_000, 3)).astype(np.float32)
    model = define_model(
        "counts",
        log_prior=lambda p: -0.5 * p["slopes"] @ p["slopes"],
        log_likelihood=lambda p, b: b["y"] * (b["x"] @ p["slopes"]) - jnp.exp(b["x"] @ p["slopes"]),
        data={"x": x, "y": rng.poisson(np.exp(x @ [0.5, -0.2, 0.1]))},
        init=lambda key: {"slopes": jnp.zeros(3)},
    )
    budgets = {"budget": Budget(gradients=10**5), "horizon": Budget(gradients=10**6)}
    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        result = tune_by_default(model, "sgld-cv", **budgets)
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert result.pilots
    assert 6 <= len(compiled) <= MOST_PROGRAMS, compiled
