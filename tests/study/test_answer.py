"""The result on the first page of a report."""

from artifact_records import make_files, records_of

from sgtune.study.mamba.headline import headline
from sgtune.study.report.answer import answer_of
from sgtune.study.report.writers import write_csv

HEADINGS = "model,sampler,tuner,metric,value,at_test_set,shown"
ROWS = """
logistic,,mamba-ksd,over_oracle,1.9,False,1.90 ± 0.27
logistic,,mamba,over_oracle,0.95,False,0.95 ± 0.08
logistic,,mamba,over_oracle,3.5,False,3.50 ± 0.10
logistic,,theory,over_oracle,0.9,False,0.90 ± 0.10
logistic,,grid,over_oracle,0.5,True,0.50 ± 0.01
logistic,,frozen,over_oracle,0.1,False,0.10 ± 0.01
pmf,,mamba,over_oracle,,False,- (reference)
bnn,,mamba,over_oracle,1.0,False,1.00
"""


def test_it_names_the_default_tuner_the_papers_and_the_smallest(tmp_path):
    """The first loss counts; tuners that use the test set, models without a number and a frozen chain are left out."""
    assert answer_of(tmp_path) == ""
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/headline.csv").write_text(HEADINGS + ROWS, encoding="utf-8")
    assert answer_of(tmp_path) == (
        "Logistic regression: MAMBA (default) 0.95 ± 0.08, MAMBA-KSD 1.90 ± 0.27, the smallest is Theory with "
        "0.90 ± 0.10. Neural network: MAMBA (default) 1.00."
    )


def test_it_reads_the_table_as_it_is_written(tmp_path):
    (tmp_path / "tables").mkdir()
    write_csv(headline(records_of(make_files())), tmp_path / "tables/headline.csv")
    assert answer_of(tmp_path).startswith("Logistic regression: MAMBA-KSD ")
