"""The numbers in the tables of the study of CCAdL."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from sgtune.study.report.metric import Metric

__all__ = ["METRICS"]


def _measured(label: str, best: object = None) -> Metric:
    return Metric(label, form="by error", best=best)


METRICS: dict[str, Metric] = {}
# Mean μ and precision γ of a normal.
for _name, _symbol in {"mu": "μ", "gamma": "γ"}.items():
    METRICS |= {
        f"density_rmse_{_name}": _measured(f"RMSE, {_symbol}", best=min),
        f"density_bias_{_name}": _measured(f"Bias, {_symbol}"),
        f"time_{_name}": _measured(f"Time to negative pair, {_symbol}"),
        f"batch_time_{_name}": _measured(f"Time of all lags, {_symbol}"),
        f"time_ratio_{_name}": _measured(f"Time to negative pair / paper, {_symbol}"),
        f"sd_ratio_{_name}": _measured(f"Sd / exact, {_symbol}"),
    }
METRICS |= {
    "density_rmse_paper": Metric("RMSE, paper", form="printed"),
    "time_paper": Metric("Time, paper", form="printed"),
    "order": Metric("Order of two samplers"),
    "crossings": _measured("Steps across γ = 0"),
    "passes_to_reference": _measured("Passes to NUTS", best=min),
    "log_likelihood_end": _measured("Log-likelihood, end", best=max),
    "seconds_per_pass": _measured("Seconds per pass, SGNHT = 1"),
    "clipped_percent": _measured("Clipped (%)"),
    "friction_needed": _measured("A needed"),
    "mean_error_sds": _measured("Error of means (sd)", best=min),
    "error_percent": _measured("Error (%)", best=min),
    "log_loss_end": _measured("Log-loss", best=min),
    "n_train": Metric("Training rows", form="count"),
    "n_test": Metric("Test rows", form="count"),
    "n_classes": Metric("Classes", form="count"),
    "n_features": Metric("Features", form="count"),
    "n_hidden": Metric("Hidden units", form="count"),
    "n_parameters": Metric("Parameters", form="count"),
    "sd_ratio_2": _measured("Sd / NUTS, no. 2"),
    "sd_ratio_5": _measured("Sd / NUTS, no. 5"),
}
