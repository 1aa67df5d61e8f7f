"""A hierarchy in NumPyro, tuned and sampled by sgtune, summarised by ArviZ."""

import arviz as az
import numpy as np
import numpyro
import numpyro.distributions as dist

import sgtune

rng = np.random.default_rng(0)
group = rng.integers(0, 5, 2_000)
x = rng.normal(size=2_000)
y = 0.5 * x + rng.normal(size=5)[group] + rng.normal(size=2_000)


def numpyro_model(x, group, y):
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    sd = numpyro.sample("sd", dist.HalfNormal(1))
    between = numpyro.sample("between", dist.HalfNormal(2))
    with numpyro.plate("groups", 5):
        effect = numpyro.sample("effect", dist.Normal(0, between))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("y", dist.Normal(slope * x + effect[group], sd), obs=y)


model = sgtune.from_numpyro(numpyro_model, data={"x": x, "group": group, "y": y}, obs=["y"])
run = sgtune.tune_and_sample(model, "sghmc-cv", budget=sgtune.Budget(steps=1_000), chains=4)
print(az.summary(run.to_arviz()))
