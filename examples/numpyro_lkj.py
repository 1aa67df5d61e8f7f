"""Intercepts and slopes that are correlated between groups, with an LKJ prior, in NumPyro, sampled by sgtune."""

import arviz as az
import numpy as np
import numpyro
import numpyro.distributions as dist

import sgtune

rng = np.random.default_rng(0)
true = rng.multivariate_normal([1.0, 0.5], [[1.0, -0.3], [-0.3, 0.25]], size=20)
school = np.repeat(np.arange(20), 40)
hours = rng.normal(size=800)
score = true[school, 0] + true[school, 1] * hours + rng.normal(size=800)


def lines(school, hours, score):
    mean = numpyro.sample("mean", dist.Normal(0, 5).expand([2]).to_event(1))
    sd = numpyro.sample("sd", dist.HalfNormal(2).expand([2]).to_event(1))
    factor = numpyro.sample("factor", dist.LKJCholesky(2, concentration=2))
    numpyro.deterministic("correlation", factor[1, 0])
    within = numpyro.sample("within", dist.HalfNormal(2))
    with numpyro.plate("schools", 20):
        z = numpyro.sample("z", dist.Normal(0, 1).expand([2]).to_event(1))
    line = numpyro.deterministic("line", mean + z @ (sd[:, None] * factor).T)
    with numpyro.plate("pupils", len(score)):
        numpyro.sample("score", dist.Normal(line[school, 0] + line[school, 1] * hours, within), obs=score)


model = sgtune.from_numpyro(lines, data={"school": school, "hours": hours, "score": score})
grid = sgtune.tuning.Grid(
    log10_step_sizes=(-1, -1.5, -2, -2.5, -3, -3.5), batch_fractions=(1.0,), n_leapfrogs=(10,)
)
tuner = sgtune.tuning.Halving(grid=grid)
run = sgtune.tune_and_sample(model, "sghmc", tuner=tuner, budget=sgtune.Budget(steps=1_000), chains=4)
print(az.summary(run.to_arviz(), var_names=["mean", "sd", "correlation", "within"]))
