"""The published tables, for tests of what README and the documentation say in words."""

import pandas as pd
from workflow_runs import ROOT


def published(study: str, table: str) -> pd.DataFrame:
    return pd.read_csv(ROOT / f"results/published/{study}/tables/{table}.csv")
