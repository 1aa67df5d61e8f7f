"""The layers of the package: the library does not import the study, and no module imports a higher layer."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src/sgtune"


def name_of(path: Path) -> str:
    return ".".join(("sgtune", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports_of(module: str, *, at_once: bool = False) -> set[str]:
    """The modules of the package that ``module`` imports anywhere; ``at_once``: only at the top level."""
    tree = ast.parse(MODULES[module].read_text("utf-8"))
    nodes, found = [tree], []
    while nodes:
        node = nodes.pop()
        is_late = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        is_typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if not at_once or not (is_late or is_typing):
            found.append(node)
            nodes += ast.iter_child_nodes(node)
    names = set()
    for node in found:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: a relative import"
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            names |= {each if each in MODULES else node.module for each in full}
    return names & MODULES.keys() - {module}


def test_the_public_interface_has_nothing_of_the_study():
    import sgtune

    # Type checkers see the same homes.
    body = ast.parse(MODULES["sgtune"].read_text("utf-8")).body
    (typed,) = (node for node in body if isinstance(node, ast.If))
    seen = {alias.asname: f"{node.module}.{alias.name}" for node in typed.body for alias in node.names}
    homes = sgtune._HOME.items()
    assert seen == {name: home if home.endswith(f".{name}") else f"{home}.{name}" for name, home in homes}
    assert not [home for home in sgtune._HOME.values() if home.startswith("sgtune.study")]


def test_imports_have_no_cycle():
    graph = {module: imports_of(module, at_once=True) for module in MODULES}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
    assert set(order) == set(MODULES)


LAYERS = (
    *("support", "model", "stein", "metrics", "samplers", "bridges", "mode", "sampling", "theory", "tuning"),
    "study",
)
"""So nothing in the library imports the study, which is the last layer."""

ROOMS = (
    *("catalogue", "posteriors", "ground_truth", "config", "pipeline", "report", "experiments"),
    *("mamba", "ccadl", "adam_mcmc", "user_posteriors", "audit", "studies"),
)
"""Of the study, as CONTRIBUTING.md lists them."""


@pytest.mark.parametrize(("package", "rooms"), [("sgtune", LAYERS), ("sgtune.study", ROOMS)])
def test_a_layer_imports_only_layers_below_it(package, rooms):
    heights = {
        module: height
        for module in MODULES
        for height, room in enumerate(rooms)
        if f"{module}.".startswith(f"{package}.{room}.")
    }
    assert set(heights.values()) == set(range(len(rooms)))
    for module, height in heights.items():
        above = {name for name in imports_of(module) if heights.get(name, 0) > height}
        assert not above, module


def test_nothing_downloaded_can_be_unpickled_or_executed():
    for module, path in MODULES.items():
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names}
                assert not {"pickle", "dill", "joblib", "marshal"} & names, module
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in ("eval", "exec", "pd.read_pickle"), module
                allowed = [word.value for word in node.keywords if word.arg == "allow_pickle"]
                assert all(ast.unparse(value) == "False" for value in allowed), module
