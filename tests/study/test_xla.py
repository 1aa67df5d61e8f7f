"""XLA's threads and flags are those of the job, unless the user names others."""

import os

import pytest

from sgtune.study.pipeline.xla import compile_quickly, use_threads


@pytest.mark.parametrize(("named", "used"), [(None, "3"), ("2", "2")])
def test_xla_has_the_threads_of_the_rule_unless_the_user_names_a_number(monkeypatch, named, used):
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    if named is not None:
        monkeypatch.setenv("PJRT_NPROC", named)
    use_threads(3)
    assert os.environ["PJRT_NPROC"] == used


LEVEL, PARTS = "--xla_backend_optimization_level=", "--xla_cpu_parallel_codegen_split_count="


@pytest.mark.parametrize(
    ("jaxlib", "named", "used"),
    [
        ("0.10.2", "", {LEVEL + "1", PARTS + "1"}),
        ("0.11.0.dev1", "", {LEVEL + "1"}),
        ("0.10.2", LEVEL + "3", {LEVEL + "3", PARTS + "1"}),
        ("0.10.2", PARTS + "4", {LEVEL + "1", PARTS + "4"}),
    ],
)
def test_xla_has_the_flags_that_it_knows_unless_the_user_names_others(monkeypatch, jaxlib, named, used):
    monkeypatch.setattr("sgtune.study.pipeline.xla.version", {"jaxlib": jaxlib}.get)
    monkeypatch.setenv("XLA_FLAGS", named)
    compile_quickly()
    assert set(os.environ["XLA_FLAGS"].split()) == used
