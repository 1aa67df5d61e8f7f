"""Which choices of a race lie at the edge of its grid."""

from sgtune.samplers import resolve_sampler
from sgtune.study.adam_mcmc.edges import edges_of, edges_said
from sgtune.study.adam_mcmc.regret_table import adam_choices
from sgtune.tuning import make_arms

AXES_OF_ADAM_MCMC = resolve_sampler("adam-mcmc")[0].axes

GRID = {
    "log10_step_sizes": [-5, -4, -3],
    "batch_fractions": [0.1, 0.01],
    "noise_sd": [0.001, 0.003, 0.01],
    "directional_noise": [0, 1, 3],
}


def chosen(**numbers):
    arms = make_arms(1000, "adam-mcmc", **GRID)
    (best,) = [
        arm for arm in arms if all(abs(arm[name] / value - 1) < 1e-9 for name, value in numbers.items())
    ]
    return edges_of(AXES_OF_ADAM_MCMC, best, arms)


def test_an_arm_inside_the_grid_is_at_no_edge():
    assert chosen(step_size=1e-4, batch_size=10, noise_sd=0.003, directional_noise=1) == []


def test_smallest_and_largest_values_are_edges():
    assert sorted(chosen(step_size=1e-5, batch_size=100, noise_sd=0.01, directional_noise=3)) == [
        ["directional_noise", "largest"],
        ["noise_sd", "largest"],
        ["step_size", "smallest"],
    ]


def test_no_noise_along_the_update_is_no_edge():
    arms = make_arms(1000, "adam-mcmc", **GRID)
    best = next(arm for arm in arms if arm["directional_noise"] == 0 and arm["noise_sd"] == 0.003)
    assert all(name == "step_size" for name, _ in edges_of(AXES_OF_ADAM_MCMC, best, arms))


def test_each_of_two_values_would_be_an_edge():
    arms = make_arms(1000, "mala", log10_step_sizes=[-5, -4])
    assert [edges_of(resolve_sampler("mala")[0].axes, arm, arms) for arm in arms] == [[], []]


def test_the_table_counts_the_races_at_an_edge():
    best = {"step_size": 1e-5, "batch_size": 10, "n_leapfrog": None}
    common = {"judge": "mamba", "best": best, "n_arms": 3, "reason": ""}
    races = [common | {"replicate": i, "edges": [["step_size", "smallest"]] * (i > 0)} for i in range(3)]
    assert edges_said(races) == "h smallest (2 of 3)"
    assert edges_said(races[1:2]) == "h smallest"
    (row,) = adam_choices({"races": [{"sampler": "mala", "races": races}]}).rows
    assert row.cells[1].text == "h smallest (2 of 3)"
    (row,) = adam_choices({"races": [{"sampler": "mala", "races": races[:1]}]}).rows
    assert row.cells[1].text == "–"  # noqa: RUF001


def test_races_of_an_older_version_have_no_edges_to_show():
    assert edges_said([{"best": {}, "edges": []}, {"best": {}}]) == "not recorded"
