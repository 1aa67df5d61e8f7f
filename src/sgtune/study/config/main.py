"""What the configuration is made of, and the keys of the main study.

A section of the configuration is a pydantic model. A key is a field of it: its type has the bounds and the unit, and
the docstring below it describes it. The main study's keys are those of the data and the ground truth, of the arms and
the tuners, and of what is done with tuned arms.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from sgtune.study.catalogue import MODELS, SAMPLERS, TUNERS

T = TypeVar("T")


class Section(BaseModel):
    """A part of the configuration: no other keys, and no value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


ABSENT = Field(None, exclude_if=lambda value: value is None)
"""The default of a key that is missing from the configuration unless it is given."""


def number(unit: str, **bounds: float) -> Any:
    """A finite number: the bounds are ``gt``, ``ge``, ``lt`` and ``le``."""
    return Annotated[float, Field(allow_inf_nan=False, json_schema_extra={"unit": unit}, **bounds)]


def integer(unit: str, least: int, most: int) -> Any:
    """A whole number."""
    return Annotated[int, Field(ge=least, le=most, json_schema_extra={"unit": unit})]


def must(what: str, is_allowed: Callable[[Any], bool]) -> AfterValidator:
    """A check of a value: the error says that it must ``what``, or, if that is empty, what its type allows."""

    def check(value: Any) -> Any:
        if not is_allowed(value):
            raise ValueError(what)
        return value

    return AfterValidator(check)


def _one_of(names: Callable[[], Iterable[str]]) -> Any:
    """One of the names that there are when a configuration is read: an entry of the catalogue is allowed at once."""
    listed = Field(json_schema_extra=lambda schema: schema.update(enum=list(names())))
    return Annotated[str, must("", lambda name: name in names()), listed]


DIFFERENT = must("", lambda values: all(value not in values[:i] for i, value in enumerate(values)))
ASCENDING = must("ascend", lambda values: all(one < next_one for one, next_one in pairwise(values)))
Unrepeated = Annotated[list[T], DIFFERENT, Field(json_schema_extra={"uniqueItems": True})]
Several = Annotated[Unrepeated[T], Field(min_length=1)]
Ascending = Annotated[Unrepeated[T], ASCENDING]
Seconds = number("s", gt=0, le=86_400)
Fraction = number("fraction of N", gt=0, le=1)
Points = integer("points", 10, 100_000)
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
Text = Annotated[str, Field(min_length=1)]
ModelName = _one_of(lambda: MODELS)
SamplerName = _one_of(lambda: SAMPLERS)
TunerName = _one_of(lambda: [name for name, entry in TUNERS.items() if entry.method is None])
Log10 = number("log10", ge=-20, le=2)
Races = integer("races", 1, 1_000)
Times = Annotated[Ascending[Seconds], Field(min_length=1)]
Curvatures = Literal["axis", "axis-narrow", "rotated", "equicorrelated"]
Clock = Literal["calibrated", "wall"]
Width = number("posterior sds", ge=0, le=1_000)
NO_DATA = must(
    "judge without predictions: Gaussians have none", lambda name: not TUNERS[name].looks_at_test_set
)
Tuners = Several[TunerName]
JudgesByScores = Several[Annotated[TunerName, NO_DATA]]
EXACT = must("contain 1, the exact draws", lambda widths: 1 in widths)
FOLDERS, STUDIES = ("published", "downloads"), ("ccadl", "adam_mcmc", "posteriors", "audit")
NO_FOLDER = must(f"be another name: results/ has {', '.join(FOLDERS)}", lambda run: run not in FOLDERS)
NO_STUDY = must("be another name: it is that of a further study", lambda name: name not in STUDIES)


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

    mirror: Annotated[Text, must("be null or a folder", lambda folder: Path(folder).is_dir())] | None = None
    """Folder with copies of the data files, tried last by downloads; null for none."""
    ood: Literal["fashion-mnist", "notmnist"] = "fashion-mnist"
    """Images without digits, on which a network for digits should be uncertain."""
    logistic: LogisticData = LogisticData()
    pmf: PmfData = PmfData()
    bnn: BnnData = BnnData()


class Map(Section):
    """The mode, where control variates are centred and chains start; to float32's accuracy up to 200 parameters."""

    epochs: integer("passes", 1, 100_000) = 500
    """Passes of Adam over the data before L-BFGS; only above 200 parameters."""
    tolerance: number("of sqrt(D)", gt=0, le=1) = 0.01
    """Above 200 parameters L-BFGS stops at a Newton step (by the diagonal Hessian) of this length in posterior sds."""
    max_steps: integer("steps", 0, 1_000_000) = 5_000
    """Most steps of L-BFGS, of one to twenty passes each; 0: a mode of more than 200 parameters is Adam's alone."""


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
    """A trajectory has at most 2^max_tree_depth - 1 leapfrogs."""


class Reference(Nuts):
    """The ground truth: NumPyro's NUTS, started at the MAP."""

    nuts: bool = True
    """Whether to run NUTS; without it nothing is judged by posterior sds."""


class SmallerGrid(Section):
    """A second grid of step sizes, on which mamba-ksd and grid also run."""

    samplers: Unrepeated[SamplerName] = ABSENT
    """Samplers that use it; an empty list turns it off."""
    log10_step_sizes: Several[Log10]
    """Step sizes e of `theta + e grad log pi + sqrt(2 e) noise`, as log10."""


class Arms(Section):
    """Hyperparameters that tuners compare."""

    log10_step_sizes: Several[Log10] = [-2, -2.5, -3, -3.5, -4, -4.5, -5, -5.5, -6, -6.5, -7, -7.5]
    """Step sizes e of `theta + e grad log pi + sqrt(2 e) noise`, as log10."""
    batch_fractions: Several[Fraction] = [1, 0.1, 0.01]
    """Batch sizes as fractions of N; 1 is the exact gradient. Not tuned by grid."""
    n_leapfrogs: Several[integer("leapfrogs", 1, 1_000)] = [5, 10]
    """Leapfrogs L of one sample; SGHMC only."""
    friction: Several[number("per kick", ge=0, le=1)] = ABSENT
    """Frictions a; SGHMC and SGNHT only. Without this key all have 0.01."""
    noise_estimate: Several[number("per kick", ge=0, le=1)] = ABSENT
    """Estimates b of the gradient noise, at most the smallest friction; SGHMC only. Without this key all have 0."""
    smaller: SmallerGrid = ABSENT


class OwnArms(Section):
    """Hyperparameters that tuners compare on a user's model, whose arms run in the coordinates of its mode."""

    log10_step_sizes: Several[Log10] = ABSENT
    """Step sizes in these coordinates, as log10. Without this key they fit the sampler and the batch, as in `tune`."""
    batch_fractions: Several[Fraction] = ABSENT
    """Batch sizes as fractions of N. Without this key 1, and of 0.1, 0.01, 0.001 those with ten rows or more."""
    n_leapfrogs: Several[integer("leapfrogs", 1, 1_000)] = [5, 10]
    """Leapfrogs L of one sample; SGHMC only."""


class Grids(Section):
    """Hyperparameters that the mamba tuners, grid and grid-ksd compare; one grid per model."""

    logistic: Arms = Arms(
        log10_step_sizes=[-1, -1.5, -2, -2.5, -3, -3.5, -4, -4.5, -5, -5.5, -6, -6.5, -7, -7.5],
        batch_fractions=[1, 0.1, 0.01, 0.001],
    )
    """Grid of the logistic regression (paper App. B.1.2, B.1.3)."""
    pmf: Arms = Arms()
    """Grid of the matrix factorisation (paper App. B.2.2, B.2.3)."""
    bnn: Arms = Arms(smaller={"samplers": ["sgnht"], "log10_step_sizes": [-5, -5.5, -6, -6.5, -7, -7.5]})
    """Grid of the network (paper App. B.3.2, B.3.3)."""
    own: OwnArms = ABSENT


class Calibration(Section):
    """Cost of a step per sampler, batch size and L, which converts seconds to steps: measured alone, or given."""

    table: Text | None = None
    """File of costs, as collect_costs writes it, for the same steps on every machine; null: they are measured."""
    seconds: number("s", gt=0, le=3_600) = 1
    """Time of each measurement, without compilation."""


class Tuning(Section):
    """How often each tuner tunes, and the data that judges of predictions use."""

    replicates: Races = 5
    """Independent races of each tuner; replicate r of the evaluation runs the arm that race r chose."""
    validation_fraction: number("fraction of N", ge=0, lt=1) = 0
    """Share of the training data that tuners judging by predictions (grid, mamba-log-loss, ...) hold out and judge
    by. 0: they judge by the test set, on which they are then evaluated, as in the paper."""


class ByScores(Section):
    """How arms run whose draws are judged by their scores."""

    clock: Clock = "calibrated"
    """`calibrated`: measured costs convert seconds to steps. `wall`: one arm at a time, by the clock."""
    thin: integer("steps", 1, 100_000) | None = None
    """Every thin-th draw of an arm judges it, at least ten; null: every tenth, or all for tuners that look ahead."""
    score_fraction: Fraction = 1
    """Share of the data in the scores, corrected at the MAP; tuners that look ahead use mamba.score_rows."""


class Mamba(ByScores):
    """Successive halving (paper Algorithm 1), for mamba and mamba-*; theory, which runs no arm, uses the horizon."""

    seconds: Seconds = 1
    """R, the total sampling time of the arm that runs longest."""
    horizon: Seconds | None = None
    """Length of the planned run, for theory, mamba, mamba-psd and mamba-ksd-scaled; null for mamba.seconds."""
    pruning_rate: integer("arms per survivor", 2, 1_000) = 3
    """eta; each rung keeps the best 1/eta of its arms."""
    score_rows: integer("rows", 1, 10_000_000) = 1_000
    """Rows in a score of a tuner that looks ahead, fresh for every draw, with control variates at the MAP."""
    points: Points = 500
    """Most of an arm's draws in a discrepancy of rung 1, at random; in each later rung pruning_rate times as many."""


class Grid(Section):
    """Grid search on the log-loss or RMSE of the test set (paper App. B.1.2, B.2.2, B.3.2)."""

    replicates: Races | None = 3
    """Races of this tuner if they are fewer than tuning.replicates; null for as many."""
    n_steps: integer("steps", 10, 10_000_000) = 5_000
    """Steps of each arm."""
    batch_fraction: Fraction = 0.1
    """Batch size of every arm."""
    start_noise: number("raw coordinates", ge=0, le=1_000) = 0.2
    """Sd of the normal noise added to the MAP where an arm starts; with 0 the smallest step size always wins."""
    points: Points = 50
    """Largest number of an arm's draws whose predictions are averaged, a uniformly random subset of them."""


class GridKsd(ByScores):
    """Grid search on the KSD."""

    replicates: Races | None = 3
    """Races of this tuner if they are fewer than tuning.replicates; null for as many."""
    seconds: Seconds = 1
    """Sampling time of each arm."""
    points: Points = 2_000
    """Largest number of an arm's draws that the KSD uses, a uniformly random subset."""


class Heuristic(Section):
    """Step size 1/N; nothing is tuned."""

    batch_fraction: Fraction = 0.1
    """Batch size."""
    n_leapfrog: integer("leapfrogs", 1, 1_000) = 10
    """Leapfrogs L of one sample; SGHMC only."""


class Draws(Section):
    """The draws of a run that count."""

    burn_in: number("fraction of samples", ge=0, lt=1) = 0
    """Share of a run's samples dropped at its start, in tables and curves."""
    kept_draws: integer("draws", 10, 100_000_000) = 1_000_000
    """Largest number of kept draws of a run, spread evenly over it; its results are computed from these."""
    thin: integer("samples per point", 1, 100_000) = 10
    """Every thin-th sample is a candidate point of the KSD, in tables and curves."""
    ksd_points: integer("points", 0, 100_000) = 1_000
    """Largest number of points of a KSD, a random subset of every thin-th sample; 0 for no KSD."""


class Curves(Section):
    """KSD and other metrics against time, from the first seconds of the runs behind the tables."""

    seconds: Times = [1, 2, 3, 4, 5]
    """Times at which a run's metrics are computed, ascending; the last is at most evaluation.seconds."""
    replicates: integer("runs", 2, 1_000) = 10
    """Runs behind a curve; those beyond evaluation.replicates are only as long as the curve."""
    ksd_points: integer("points", 0, 100_000) = 100
    """Largest number of points of a KSD on a curve; 0 for no KSD."""
    prediction_draws: integer("draws", 0, 1_000_000) = 0
    """Largest number of draws whose predictions are averaged at each time; 0 for no predictions."""


class Evaluation(Draws):
    """Runs of the tuned samplers from the MAP (paper Tables 1-3, 6, 8 and 10, Figs. 3-5)."""

    clock: Clock = "calibrated"
    """`calibrated`: the cost table converts seconds to steps. `wall`: by the clock, alone on the machine."""
    seconds: Seconds = 10
    """Length of the runs behind the tables."""
    replicates: integer("runs", 1, 1_000) = 5
    """Independent runs behind the tables; run r uses the arm of race r, and again the first after the last."""
    prediction_draws: integer("draws", 1, 1_000_000) = 1_000
    """Largest number of draws whose predictions are averaged, spread evenly over the chain."""
    curves: Curves = Curves()


class Screen(Section):
    """The screen: every arm of the grid in a few replicates."""

    seconds: Seconds = 1
    """Time of each arm."""
    replicates: integer("runs", 1, 1_000) = 3
    """Independent runs of each arm."""


class ScreenWithOracles(Screen):
    """The screen: every arm of the grid in a few replicates; and the oracles, with which arms are compared."""

    oracle_losses: integer("losses", 1, 3) = 1
    """Number of the model's losses, the main one first, with an oracle: the race of MAMBA that sees the true loss."""


class Finals(Section):
    """Fresh runs of the screen's best arms, the finalists, and of the chosen arms."""

    finalists: integer("arms", 1, 1_000) = 6
    """Number of the screen's best arms that run again."""
    seconds: Ascending[Seconds] = [1, 5]
    """Times after which arms are judged, ascending; the last is the runs' length. Empty: no regret, and no screen."""
    replicates: integer("runs", 2, 1_000) = 4
    """Fresh runs of each of these arms."""


class Regret(Finals):
    """How much worse, in expectation, a tuner's arm is than the best finalist of its grid: all arms are screened, and
    the best of them, the finalists, and all chosen arms run again in fresh replicates."""

    screen: ScreenWithOracles = ScreenWithOracles()
    prediction_draws: integer("draws", 0, 1_000_000) = 0
    """Largest number of an arm's draws whose predictions are averaged; 0 for no predictions."""


class Horizons(Section):
    """The arms that mamba and theory choose for runs of several lengths from races of the same mamba.seconds, and the
    errors of these arms in fresh runs, all of the longest length."""

    seconds: Ascending[Seconds] = []
    """Lengths of the planned runs, ascending; an empty list turns this study off. It needs a reference."""
    samplers: Several[SamplerName] = ["sgld"]
    """Samplers to tune, of those that the run has."""
    replicates: integer("runs", 2, 1_000) = 2
    """Fresh runs of each arm."""


class Estimates(Section):
    """The four estimates of the KSD (paper Figs. 1 and 2), on SGLD chains."""

    seconds: Seconds = 1
    """Sampling time of each chain."""
    thin: integer("samples per point", 2, 100_000) = 5
    """Every thin-th sample in the two thinned estimates."""
    batch_fraction: Fraction = 0.01
    """Batch size while the step size varies (Fig. 1)."""
    batch_fractions: Several[Fraction] = [1, 0.1, 0.01, 0.001]
    """Batch sizes while the step size is fixed (Fig. 2)."""
    log10_step_size: Log10 = -4.5
    """Step size while the batch size varies (Fig. 2)."""
    log10_step_sizes: Several[Log10] = [-1, -1.5, -2, -2.5, -3, -3.5, -4, -4.5, -5, -5.5, -6, -6.5, -7, -7.5]
    """Step sizes while the batch size is fixed (Fig. 1)."""
    max_points: Points = 5_000
    """Largest number of samples of a chain in "all samples", spread evenly over it."""


class Widths(Section):
    """Discrepancies of draws made too narrow or too wide."""

    points: Points = 500
    """Draws scored at each width."""
    widths: Annotated[Several[Width], EXACT] = [0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 2.5, 3]
    """Widths of the draws; 0 is a point mass at the MAP, 1 the posterior."""


class Ladder(Section):
    """Tuners on Gaussian posteriors of growing dimension, on which theory gives the expected error of every arm."""

    dimensions: Several[integer("parameters", 2, 100_000)] = [10, 100, 1000]
    """Dimensions D; each is a job."""
    kinds: Several[Curvatures] = list(get_args(Curvatures))
    """Kinds of curvatures: over three decades along the axes, a thousand times as large, the first rotated, and all
    parameters correlated by 0.9."""
    samplers: Several[SamplerName] = ["sgld"]
    """Samplers to tune."""
    tuners: JudgesByScores = ["mamba-ksd", "mamba-fssd", "mamba-ksd-scaled", "mamba-psd", "mamba", "theory"]
    """Tuners to judge; none that judges by predictions, because a Gaussian has none."""
    seconds: number("seconds", gt=0, le=1_000) = 0.05
    """R, and the length of theory's run; a gradient is said to cost 5 us, and 0.1 us for each of its rows."""
    points: Points = 500
    """Largest number of points that judge an arm in the first rung, as mamba.points."""
    replicates: Races = 1
    """Races of each tuner."""


class Sensitivity(Section):
    """Which errors each discrepancy sees: exact draws of known targets with one error at a time. It uses no model."""

    dimensions: Several[integer("dimensions", 2, 100_000)] = [10, 1000, 50000]
    """Dimensions D of the targets."""
    points: Several[integer("points", 10, 2_000)] = [15, 100, 500]
    """Numbers of draws that a judge uses; in D dimensions at most 5,000,000 / D."""
    replicates: integer("sets of draws", 3, 1_000) = 6
    """Independent sets of draws; their spread is the noise of a value."""


class OfModels(Section):
    """The part of the configuration that holds for every model, unless `per_model` overrides it."""

    tuners: Tuners = ["mamba-ksd", "mamba-fssd", "mamba", "theory", "grid", "heuristic", "grid-ksd"]
    """Tuners to compare, in the order of the tables' rows; judges by ece, mce, accuracy and log-loss need classes."""
    map: Map = Map()
    reference: Reference = Reference(n_draws=20_000)
    calibration: Calibration = Calibration()
    tuning: Tuning = Tuning()
    mamba: Mamba = Mamba()
    grid: Grid = Grid()
    grid_ksd: GridKsd = GridKsd()
    heuristic: Heuristic = Heuristic()
    evaluation: Evaluation = Evaluation()
    regret: Regret = Regret()
    horizons: Horizons = Horizons()
    estimates: Estimates = Estimates()
    widths: Widths = Widths()


class PerModel(Section):
    """Values for one model, which override those of `tuners` and of the sections from `map` to `widths`; every key of
    these may be given. They take precedence even if the section's value is from another file or the command line."""

    logistic: OfModels = OfModels()
    """For the logistic regression."""
    pmf: OfModels = OfModels()
    """For the matrix factorisation."""
    bnn: OfModels = OfModels()
    """For the network."""
    own: OfModels = ABSENT
    """For the model of a user's file."""


class Main(OfModels):
    """The configuration but for the sections of further studies."""

    run: Annotated[str, Field(pattern="^[a-z][a-z0-9_-]*$"), NO_FOLDER]
    """Name of the run. Its files are in results/{run}/, and every artifact names it. `published` is not allowed."""
    published_as: Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$"), NO_STUDY] = "paper"
    """Folder in results/published/ to which the rule publish copies tables and figures."""
    model: Text = ABSENT
    """A Python file whose function model() returns a model of sgtune: the model `own` of `models`, and by default the
    only one (config/own.yaml). Without `run` the run has the file's name. Paths are from where Snakemake is started."""
    artifacts: Several[Text] | None = None
    """Names of the main study's tables and figures to make, with only the jobs that they need; null for all."""
    seed: Seed = 0
    """Root seed from which every random key is derived, by name."""
    models: Several[ModelName] = ["logistic", "pmf", "bnn"]
    """Models to study, in the order of the report."""
    samplers: Several[SamplerName] = ["sgld", "sgld-cv", "sghmc", "sghmc-cv", "sgnht", "sgnht-cv"]
    """Samplers to tune, in the order of the tables' columns; `-cv` is the control-variate gradient estimator."""
    data: Data = Data()
    grids: Grids = Grids()
    ladder: Ladder = Ladder()
    sensitivity: Sensitivity = Sensitivity()
    per_model: PerModel = PerModel()
