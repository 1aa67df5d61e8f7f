"""Keys of what is sampled: the data sets, the modes and the ground truth."""

from pathlib import Path
from typing import Literal

from pydantic import model_validator

from sgtune.study.config.keys import Section, Seed, Text, integer, number
from sgtune.support.errors import InputError

__all__ = ["Data", "Map", "Nuts", "Reference"]


class LogisticData(Section):
    """Simulated logistic regression (paper App. B.1.1)."""

    n_rows: integer("rows", 2, 10_000_000) = 1_000_000
    """Simulated rows, training and test together."""
    n_train: integer("rows", 1, 10_000_000) = 800_000
    """Training rows (N of the posterior), taken from the front; the other rows are the test set. Below n_rows."""
    dimension: integer("columns", 1, 1_000) = 10
    """Number of covariates, D."""
    seed: Seed = 42
    """Seed of the simulation; 42 with the other defaults is the paper's own data set."""

    @model_validator(mode="after")
    def _rows_are_left_for_the_test_set(self):
        if not self.n_train < self.n_rows:
            raise InputError(
                f"data.logistic.n_train: {self.n_train} is not allowed; it must be < data.logistic.n_rows = "
                f"{self.n_rows}, to leave rows for the test set"
            )
        return self


class PmfData(Section):
    """Ratings, split u1 of MovieLens 100K (paper Sect. 4.2)."""

    simulated: integer("ratings", 50, 10_000_000) | None = None
    """Number of ratings to simulate instead, four fifths of them for training; null for the real ratings."""
    seed: Seed = 0
    """Seed of the simulated ratings."""


class BnnData(Section):
    """Handwritten digits, MNIST (paper Sect. 4.3)."""

    simulated: integer("images", 50, 1_000_000) | None = None
    """Number of training images to simulate instead; null for the real images."""
    n_hidden: integer("hidden units", 1, 10_000) = 100
    """Hidden units of the network."""


class Data(Section):
    """The data sets."""

    mirror: Text | None = None
    """Folder with copies of the data files, tried last by downloads; null for none."""
    ood: Literal["fashion-mnist", "notmnist"] = "fashion-mnist"
    """Images without digits, on which a network for digits should be uncertain."""
    logistic: LogisticData = LogisticData()
    pmf: PmfData = PmfData()
    bnn: BnnData = BnnData()

    @model_validator(mode="after")
    def _the_mirror_is_there(self):
        if self.mirror is not None and not Path(self.mirror).is_dir():
            raise InputError(
                f"data.mirror: {self.mirror!r} is not allowed; it must be null or a folder; "
                f"{str(Path(self.mirror).absolute())!r} is not a folder"
            )
        return self


class Map(Section):
    """The mode, where control variates are centred and chains start. Up to 200 parameters it is as accurate as float32
    allows."""

    epochs: integer("passes", 1, 100_000) = 500
    """Passes of Adam over the data before L-BFGS; only above 200 parameters."""
    tolerance: number("of sqrt(D)", gt=0, le=1) = 0.01
    """Above 200 parameters L-BFGS stops when the Newton step (by the Hessian's diagonal) has this length in posterior
    sds; draws are sqrt(D) away from the mode."""
    max_steps: integer("steps", 0, 1_000_000) = 5_000
    """Largest number of steps of L-BFGS, each of one to twenty passes over all data; 0, which is only for models of
    more than 200 parameters, leaves the mode where Adam ends."""


class Nuts(Section):
    """The ground truth: NumPyro's NUTS, started at the MAP."""

    chains: integer("chains", 1, 64) = 2
    """Independent chains; R-hat needs two (one chain is split)."""
    n_warmup: integer("iterations", 10, 1_000_000) = 1_000
    """Warm-up iterations of each chain."""
    n_draws: integer("draws", 20, 10_000_000) = 10_000
    """Kept draws of all chains together; a multiple of chains."""
    block: integer("iterations", 1, 1_000_000) = 500
    """Iterations between two checkpoints of a chain; a killed job loses at most this many."""
    max_tree_depth: integer("doublings", 1, 20) = 10
    """A trajectory has at most 2^max_tree_depth - 1 leapfrogs; the diagnostics report the share of trajectories that
    reach this."""


class Reference(Nuts):
    """The ground truth: NumPyro's NUTS, started at the MAP."""

    nuts: bool = True
    """Whether to run NUTS; without it nothing is judged by posterior sds."""
