"""The study of disturbed draws: its targets, the values of judges, and the errors that each judge detects."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgtune.stein import fssd, fssd_at, ksd, optimise_locations, psd, virial
from sgtune.study.experiments.readings import JUDGES, read
from sgtune.study.experiments.sensitivity import (
    CORRELATION,
    HALF_DISTANCE,
    PERTURBATIONS,
    Normals,
    measure_sensitivity,
    numbers_of_points,
    signal_over_noise,
)

pytestmark = pytest.mark.optimised

SIGMAS = 4.5


def normals(n, dimension, seed=0) -> Normals:
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((n, dimension), dtype=np.float32)
    return Normals(noise, rng.standard_normal(n), rng.uniform(size=n))


# --- the targets ---


@pytest.mark.parametrize("name", ["width", "shift", "coordinate", "direction"])
@pytest.mark.parametrize("dimension", [3, 201])
def test_scores_are_those_of_the_gaussian_that_exact_draws_are_from(name, dimension):
    disturbed = PERTURBATIONS[name]
    is_correlated = name == "direction" and dimension == 201
    correlation = CORRELATION if is_correlated else 0.0
    covariance = (1 - correlation) * np.eye(dimension) + correlation
    for size in (disturbed.exact, disturbed.sizes[1]):
        positions, scores = disturbed.draw(normals(50, dimension), size)
        assert positions.dtype == scores.dtype == np.float32
        assert np.allclose(scores, -np.linalg.solve(covariance, positions.T.astype(float)).T, atol=1e-4)
    exact, _ = disturbed.draw(normals(4_000, dimension), disturbed.exact)
    # The variance equals the target's in any direction: one coordinate, and the sum of all.
    for direction in (np.eye(dimension)[0], np.ones(dimension)):
        variance = direction @ covariance @ direction
        along = exact @ direction
        assert abs(along.mean()) < SIGMAS * np.sqrt(variance / 4_000)
        assert abs(along.var() / variance - 1) < SIGMAS * np.sqrt(2 / 4_000)


def test_scores_of_the_mixture_are_slopes_of_its_log_density():
    def log_density(x):
        at = HALF_DISTANCE * jnp.eye(3)[0]
        return jnp.logaddexp(-0.5 * jnp.sum((x - at) ** 2), -0.5 * jnp.sum((x + at) ** 2))

    positions, scores = PERTURBATIONS["weights"].draw(normals(40, 3), 0.5)
    assert np.allclose(scores, jax.vmap(jax.grad(log_density))(positions), atol=1e-4)


def test_a_disturbance_is_of_what_it_says_and_leaves_the_rest_as_it_is():
    same = normals(2_000, 250)

    def drawn(name, size):
        return PERTURBATIONS[name].draw(same, size)[0].astype(float)

    assert np.allclose(drawn("width", 1.5), 1.5 * same.noise, rtol=1e-6)
    assert np.allclose(drawn("shift", 0.5), same.noise + 0.5, atol=1e-6)
    assert np.allclose(drawn("coordinate", 3.0)[:, 0], 3 * same.noise[:, 0], rtol=1e-6)
    assert np.array_equal(drawn("coordinate", 3.0)[:, 1:], same.noise[:, 1:])
    exact, half, frozen = (drawn("direction", size) for size in (1.0, 0.5, 0.0))
    means = exact.mean(axis=1)
    assert np.allclose(half.mean(axis=1), 0.5 * means, atol=1e-5)
    assert np.allclose(frozen.mean(axis=1), 0, atol=1e-5)
    assert np.allclose(frozen - exact, -means[:, None], atol=1e-5)
    shares = [np.mean(drawn("weights", size)[:, 0] > 0) for size in (0.5, 0.8, 1.0)]
    assert abs(shares[0] - 0.5) < SIGMAS * 0.5 / np.sqrt(2_000)
    assert abs(shares[1] - 0.8) < SIGMAS * 0.4 / np.sqrt(2_000)
    assert shares[2] == pytest.approx(1.0, abs=0.002)


# --- the readings ---


@pytest.mark.parametrize("dimension", [4, 203])
def test_readings_are_those_of_the_library_and_their_squares_are_jackknifed(dimension):
    """Which leaves each draw with itself out, where a square is a mean over pairs."""
    positions, scores = PERTURBATIONS["coordinate"].draw(normals(14, dimension), 2.0)
    found = {(judge, n): reading for judge, n, reading in read(positions, scores, (9, 14), seed=3)}
    assert {judge for judge, _ in found} == set(JUDGES)
    wide = np.full(dimension, np.sqrt(dimension))
    for n in (9, 14):
        x, s = positions[:n].astype(float), scores[:n].astype(float)
        locations = optimise_locations(positions[:n:2], scores[:n:2], 3)
        measures = {
            "ksd": (ksd, x, s),
            "ksd_wide": (partial(ksd, scale=wide), x, s),
            "fssd": (partial(fssd_at, locations=locations), x[1::2], s[1::2]),
            "psd": (psd, x, s),
            "virial": (virial, x, s),
        }
        for judge, (measure, x_read, s_read) in measures.items():
            value, m = measure(x_read, s_read), len(x_read)
            own = np.mean([measure(x_read[[i]], s_read[[i]]) ** 2 for i in range(m)])
            without = np.mean(
                [measure(np.delete(x_read, i, 0), np.delete(s_read, i, 0)) ** 2 for i in range(m)]
            )
            reading = found[judge, n]
            assert reading.value == pytest.approx(value, rel=1e-5)
            error = 1e-5 * own  # of the difference of two numbers of this size
            jackknife = m * value**2 - (m - 1) * without
            assert reading.square == pytest.approx(jackknife, rel=1e-4, abs=m * error)
            if judge != "virial":
                pairs = (m * value**2 - own) / (m - 1)
                assert reading.square == pytest.approx(pairs, rel=1e-5, abs=error)
        assert found["fssd", n].value == pytest.approx(fssd(positions[:n], scores[:n], seed=3), rel=1e-5)


def test_squares_have_no_bias():
    """The mean is 0 for exact draws.

    For shifted draws the PSD has |a|^2 from each m_i and a^4 from each pair, and the virial (sqrt(1 + a^2) - 1)^2.
    """
    dimension, shift = 3, 0.5
    squares = {"exact": {}, "shift": {}}
    for seed in range(60):
        for name, size in (("exact", 0.0), ("shift", shift)):
            positions, scores = PERTURBATIONS["shift"].draw(normals(10, dimension, seed), size)
            for judge, _, reading in read(positions, scores, (10,), seed=seed):
                squares[name].setdefault(judge, []).append(reading.square)
    assert squares["exact"].keys() == set(JUDGES)
    for found in squares["exact"].values():
        assert abs(np.mean(found)) < SIGMAS * np.std(found) / np.sqrt(60)
    psds = squares["shift"]["psd"]
    square = shift**2 + dimension * shift**4
    assert abs(np.mean(psds) - square) < SIGMAS * np.std(psds) / np.sqrt(60)
    assert square > 2 * SIGMAS * np.std(squares["exact"]["psd"]) / np.sqrt(60)
    virials = squares["shift"]["virial"]
    assert abs(np.mean(virials) - (np.sqrt(1 + shift**2) - 1) ** 2) < SIGMAS * np.std(virials) / np.sqrt(60)


def test_a_signal_is_a_difference_of_means_in_sds_with_its_standard_error():
    rng = np.random.default_rng(0)
    own, exact = 7 + 2 * rng.standard_normal((3_000, 20)), 1 + rng.standard_normal((3_000, 20))
    found = np.array([signal_over_noise(*pair) for pair in zip(own, exact, strict=True)])
    signals, errors = found.T
    # Six in units of sqrt((4 + 1) / 2); with 20 replicates an estimate is 2% too large, or 5% if sds differ.
    assert signals.mean() == pytest.approx(6 / np.sqrt(2.5), rel=0.05)
    assert errors.mean() == pytest.approx(signals.std(), rel=0.25)
    same = np.array([signal_over_noise(a, b)[0] for a, b in zip(exact[:1500], exact[1500:], strict=True)])
    assert same.std() == pytest.approx(np.sqrt(2 / 20), rel=0.1)


def test_draws_are_fewer_where_they_would_not_fit():
    assert numbers_of_points(10, [500, 15]) == [15, 500]
    assert numbers_of_points(50_000, [15, 100, 500]) == [15, 100]
    assert numbers_of_points(50_000, [15, 500]) == [15, 100]


# --- detected errors ---


@pytest.fixture(scope="module")
def found():
    """The signals by disturbance, size and judge, for 25 draws in 300 dimensions."""
    lines = []
    settings = {"dimensions": [300], "points": [25], "replicates": 12}
    rows = measure_sensitivity(**settings, seed=1, report=lines.append)
    assert lines == ["D = 300: 12 replicates of 25 draws"]
    assert len(rows) == len(JUDGES) * sum(1 + len(disturbed.sizes) for disturbed in PERTURBATIONS.values())
    return {(row["perturbation"], row["size"], row["judge"]): row for row in rows}


def is_seen(row) -> bool:
    return row["square_signal"] > 2 + SIGMAS / 2 * row["square_signal_se"]


def is_unseen(row) -> bool:
    return abs(row["square_signal"]) < 2


def test_no_ksd_sees_widths_in_many_dimensions_and_the_psd_and_the_virial_do(found):
    for width in (0.5, 1.5):
        assert is_seen(found["width", width, "psd"])
        assert is_seen(found["width", width, "virial"])
        assert is_unseen(found["width", width, "ksd_wide"])
    assert is_unseen(found["width", 1.5, "ksd"])


def test_by_its_value_a_ksd_of_few_draws_prefers_narrow_ones(found):
    for judge in ("ksd", "ksd_wide"):
        narrow, exact, wide = (found["width", width, judge] for width in (0.5, 1.0, 1.5))
        assert narrow["value_signal"] < -10 < 0 == exact["value_signal"] < 10 < wide["value_signal"]
    for judge in ("psd", "virial"):
        assert found["width", 0.5, judge]["value_signal"] > 0


def test_all_see_a_shift_and_none_the_weights_of_modes(found):
    for judge in JUDGES:
        assert is_seen(found["shift", 1.0, judge])
        assert is_unseen(found["weights", 0.9, judge])


def test_one_coordinate_among_many_is_not_seen_and_a_frozen_common_mode_by_the_psd_alone(found):
    for judge in JUDGES:
        assert is_unseen(found["coordinate", 1.5, judge])
        assert (is_seen if judge == "psd" else is_unseen)(found["direction", 0.0, judge])
    for judge in set(JUDGES) - {"virial"}:
        assert is_unseen(found["coordinate", 0.0, judge])


def test_of_a_frozen_coordinate_the_virial_sees_n_over_the_root_of_half_the_dimensions(found):
    """The signal 1 / D over the noise: the sd of the mean over D of (root - 1)^2, each a chi-square over 2 n."""
    row = found["coordinate", 0.0, "virial"]
    assert row["square"] == pytest.approx(1 / 300, abs=SIGMAS * row["square_se"])
    assert row["square_signal"] == pytest.approx(25 * np.sqrt(2 / 300), abs=SIGMAS * row["square_signal_se"])


def test_exact_draws_are_their_own_measure(found):
    for judge in JUDGES:
        row = found["width", 1.0, judge]
        assert (row["value_signal"], row["square_signal"], row["square_signal_se"]) == (0, 0, 0)
        assert row["value"] > 0
        assert abs(row["square"]) < SIGMAS * row["square_se"]


def test_rows_repeat_and_depend_on_the_seed():
    settings = {"dimensions": [3], "points": [10], "replicates": 2}
    first, again, other = (measure_sensitivity(**settings, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other
