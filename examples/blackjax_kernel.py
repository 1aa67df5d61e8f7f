"""A kernel of BlackJAX with tuned hyperparameters and control variates."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

import sgtune

rng = np.random.default_rng(0)
x = rng.normal(size=(2_000, 3))
y = rng.random(2_000) < 1 / (1 + np.exp(-x @ [1.0, -1.0, 0.5]))


def logprior_fn(position):
    return -0.5 * position @ position


def loglikelihood_fn(position, datum):
    return jax.nn.log_sigmoid((2.0 * datum["y"] - 1) * (datum["x"] @ position))


model = sgtune.from_log_densities(
    logprior_fn, loglikelihood_fn, data={"x": x, "y": y}, init=lambda key: jnp.zeros(3)
)
kernel = sgtune.from_blackjax(blackjax.sgld)
run = sgtune.tune_and_sample(
    model, kernel, gradient=sgtune.gradients.control_variate, budget=sgtune.Budget(steps=1_000), chains=4
)
print(run)
