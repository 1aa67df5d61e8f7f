"""Several starts of the search for the mode: which modes they find, and which of them is the MAP."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference_models import gaussian_model
from small_models import mixture_model, model_of_prior

from sgtune import InputError
from sgtune.mode import find
from sgtune.mode.curvature import laplace_sd
from sgtune.mode.find import find_map, map_position, map_result
from sgtune.mode.modes import modes_of


def test_modes_of_exchangeable_labels_are_found_from_a_constant_start():
    """The start is a saddle, where a single search ends; the two modes have the labels in both orders."""
    model = mixture_model()
    assert find_map(model).doubt
    modes_of(model, 2)
    first = list(model.found.searches.values())
    modes = modes_of(model, 4)
    # A search is made once for each start.
    assert len(model.found.searches) == 4
    assert all(one is other for one, other in zip(first, model.found.searches.values(), strict=False))
    assert modes.positions.shape == (2, 2)
    np.testing.assert_allclose(modes.positions[0], modes.positions[1][::-1], atol=1e-3)
    assert np.abs(modes.positions[0] - modes.positions[1]).min() > 3
    np.testing.assert_allclose(modes.log_densities, 0, atol=0.1)
    assert set(modes.of_start[1:].tolist()) == {0, 1}
    # The first search did not end at a mode.
    assert modes.of_start[0] == -1
    assert not map_result(model).doubt
    lost, line = modes.remark(modes.of_start)
    assert lost == "modes: the search did not end at a mode for chains 0, which start about the best"
    for mode in (0, 1):
        named = ", ".join(str(chain) for chain in np.flatnonzero(np.maximum(modes.of_start, 0) == mode))
        assert f"0 nats (chains: {named})" in line


def test_starts_that_find_one_mode_agree_with_a_single_start():
    single = find_map(gaussian_model()[0])
    model, exact, _ = gaussian_model()
    modes = modes_of(model, 4)
    np.testing.assert_allclose(modes.positions[0], exact, atol=1e-4)
    assert len({id(result) for result in model.found.searches.values()}) == 4
    assert modes.positions.shape[0] == 1
    assert modes.of_start.tolist() == [0] * 4
    assert modes.remark(modes.of_start) == []
    jax.tree.map(np.testing.assert_array_equal, map_position(model), single.position)


HEIGHT = 5.0


def two_wells(**options):
    """Modes at 3, where searches start, and at -3, twice as wide and `HEIGHT` nats higher."""

    def log_prior(x):
        return jnp.logaddexp(
            -0.5 * jnp.sum((x - 3) ** 2) / 0.1**2, HEIGHT - 0.5 * jnp.sum((x + 3) ** 2) / 0.2**2
        )

    return model_of_prior(log_prior, 3.1 * jnp.ones(1), "two wells", **options)


def test_a_better_mode_is_the_map_from_then_on(tmp_path):
    """So is its curvature, and the mode that is saved."""
    model = two_wells(data_dir=tmp_path)
    np.testing.assert_allclose(map_position(model), [3], atol=1e-3)
    np.testing.assert_allclose(laplace_sd(model), [0.1], rtol=1e-3)
    modes = modes_of(model, 6)
    np.testing.assert_allclose(modes.positions, [[-3], [3]], atol=1e-3)
    np.testing.assert_allclose(modes.log_densities, [0, -HEIGHT], atol=1e-3)
    assert modes.of_start[0] == 1
    assert "-5 nats (chains: none)" in modes.remark(np.zeros(6, int))[0]
    np.testing.assert_allclose(map_position(model), [-3], atol=1e-3)
    np.testing.assert_allclose(laplace_sd(model), [0.2], rtol=1e-3)
    np.testing.assert_allclose(find_map(two_wells(), n_starts=6).position, [-3], atol=1e-3)
    # Another process finds the same. The saved mode is not that of the first start, which is searched again.
    model = two_wells(data_dir=tmp_path)
    np.testing.assert_allclose(map_position(model), [-3], atol=1e-3)
    again = modes_of(model, 6)
    assert again.of_start.tolist() == modes.of_start.tolist()
    np.testing.assert_allclose(again.positions, modes.positions, atol=1e-4)
    assert sorted(model.found.searches) == list(range(6))


def test_starts_where_the_log_posterior_is_not_finite_come_nearer():
    """A Gamma(2, 1) ends at 0, which most starts would be beyond."""
    model = model_of_prior(lambda x: jnp.sum(jnp.log(x) - x), 0.3 * jnp.ones(10), "gamma")
    modes_of(model, 4)
    assert not any(result.doubt for result in model.found.searches.values())
    np.testing.assert_allclose(map_position(model), np.ones(10), atol=1e-3)


def test_a_search_that_fails_is_named_and_its_chain_starts_about_the_best_mode(monkeypatch):
    model, start = two_wells(), find._start
    factors = [1, 1, np.nan, 1]
    monkeypatch.setattr(find, "_start", lambda model, number: start(model, number) * factors[number])
    modes = modes_of(model, 4)
    assert modes.of_start[2] == -1
    assert (modes.of_start[[0, 1, 3]] >= 0).all()
    line = modes.remark(modes.of_start)[0]
    assert line.startswith("modes: the search did not end at a mode for chains 2, ")
    assert not map_result(model).doubt


def test_further_starts_are_jittered_also_where_init_is_a_narrow_draw():
    """A single mode is found from 0.01 N(0, 1) beside one of two wells, 6 apart."""
    init = {"init": lambda key: 3.1 + 0.01 * jax.random.normal(key, (1,))}
    model = replace(two_wells(), **init)
    assert modes_of(model, 8).positions.shape == (2, 1)
    # Where no jittered start has a density, a start is as it is drawn.
    tiny = replace(
        model_of_prior(lambda x: jnp.sum(jnp.log(x) - 1e3 * x), 1e-3 * jnp.ones(20)),
        init=lambda key: 1e-3 * jax.random.uniform(key, (20,), minval=0.5),
    )
    assert all((find._start(tiny, number) > 0).all() for number in range(4))
    # Draws of many weights have a scale of their own.
    many = replace(
        model_of_prior(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(201)),
        init=lambda key: jax.random.normal(key, (201,)),
    )
    spread = np.std([find._start(many, number) for number in range(1, 5)])
    assert spread == pytest.approx(1, abs=0.15)


def test_a_given_position_is_one_start():
    with pytest.raises(InputError, match=r"^n_starts: 2 .* <= 1"):
        find_map(gaussian_model()[0], position=jnp.zeros(3), n_starts=2)
