"""A hierarchy in NumPyro, tuned and sampled by sgtune, summarised by ArviZ."""

import arviz as az
import numpy as np
import numpyro
import numpyro.distributions as dist

import sgtune
from sgtune.bridges.arviz_trees import to_arviz

rng = np.random.default_rng(0)
group = rng.integers(0, 5, 2_000)
x = rng.normal(size=2_000)
y = 0.5 * x + rng.normal(size=5)[group] + rng.normal(size=2_000)


def numpyro_model(x, group, y):
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    sd = numpyro.sample("sd", dist.HalfNormal(1))
    with numpyro.plate("groups", 5):
        effect = numpyro.sample("effect", dist.Normal(0, 1))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("y", dist.Normal(slope * x + effect[group], sd), obs=y)


model = sgtune.from_numpyro(numpyro_model, data={"x": x, "group": group, "y": y})
result = sgtune.tune(model, "sgld-cv", budget=sgtune.Budget(steps=2_000))
chains = [result.sample(sgtune.Budget(steps=5_000), seed=seed) for seed in range(2)]
print(az.summary(to_arviz(chains, tuning=result)))
