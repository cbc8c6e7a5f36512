"""The rules of the house that can be measured: names, module docstrings, layers and mirrors.

A limit is the count on the day it was last looked at. It only goes down: a commit that lowers a count lowers its limit.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "penstock"
FILES = sorted(PACKAGE.rglob("*.py"))

ROOT_MODULES_LIMIT = 6
FORMATTER_OFF_LIMIT = 20
PARTICIPLE_LIMIT = 719
VAGUE_BINDING_LIMIT = 1_789
QUESTION_LIMIT = 245
SHARED_CLASS_NAME_LIMIT = 57

VAGUE = {"one", "held", "said", "made", "given", "told", "kept"}
# Past participles that do not end in "ed". Words that are also the verb itself ("read", "put", "set") are no trouble.
IRREGULAR = """
begun borne born built chosen dealt drawn driven forgotten found given gone grown held kept known laid lost made meant
met paid said seen sent shown sold sought spent spoken taken taught thought told understood woken won worn written
"""
# These end as a participle does, and are verbs or nouns; or they are adjectives that answer yes or no.
NO_PARTICIPLES = {"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"}
PREDICATES = {"closed", "done", "enabled", "ended", "expired", "finished", "paused", "supported"}
QUESTION_WORDS = re.compile(r"(Who|What|Where|When|Why|How|Which|Is|Are|Does|Do|Can)\b")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tree(path: Path) -> ast.Module:
    """A module of the package as its syntax tree."""
    return ast.parse(path.read_text("utf-8"))


def place(path: Path) -> str:
    """A file of the package as the documentation names it."""
    return path.relative_to(ROOT).as_posix()


def root_modules() -> list[str]:
    """The modules that stand beside the packages."""
    return sorted(path.stem for path in PACKAGE.glob("*.py"))


def top_level_names() -> set[str]:
    """The modules and packages directly in `penstock`, apart from the package itself and its command."""
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return packages | set(root_modules()) - {"__init__", "__main__"}


# What holds


def test_few_modules_stand_at_the_root() -> None:
    assert len(root_modules()) <= ROOT_MODULES_LIMIT, root_modules()


def test_the_formatter_decides_how_lines_look() -> None:
    skips = [place(path) for path in FILES for _ in re.findall(r"# fmt: (?:skip|off)", path.read_text("utf-8"))]
    assert len(skips) <= FORMATTER_OFF_LIMIT, skips


def test_every_package_has_its_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    named = [name.strip() for layer in layers for name in re.split(r"[|:]", layer)]
    assert sorted(named) == sorted(top_level_names())


def test_no_module_hides_behind_a_public_name() -> None:
    """`penstock.NAME` is either what users call or a module, whichever was imported last."""
    imports = (node for node in tree(PACKAGE / "__init__.py").body if isinstance(node, ast.ImportFrom))
    public = {alias.asname or alias.name for node in imports for alias in node.names}
    assert len(public) > 50
    assert public & top_level_names() == set()


def test_a_module_says_what_is_in_it() -> None:
    nameless = {"base", "common", "helper", "helpers", "misc", "util", "utils"}
    assert [place(path) for path in FILES if nameless & {path.stem, path.parent.name}] == []


def registry(engine: str) -> tuple[set[str], set[str]]:
    """Of an engine's registry of operators: the rules that are its keys, and the modules its operators are from."""
    module = tree(PACKAGE / engine / "operators" / "registry.py")
    folder = f"penstock.{engine}.operators."
    sources = [node.module or "" for node in module.body if isinstance(node, ast.ImportFrom)]
    modules = {source.removeprefix(folder).split(".")[0] for source in sources if source.startswith(folder)}
    (table,) = (node.value for node in module.body if isinstance(node, ast.AnnAssign))
    assert isinstance(table, ast.Dict)
    return {ast.unparse(key) for key in table.keys if key is not None}, modules - {"protocol"}


def test_each_rule_is_played_by_both_engines() -> None:
    assert registry("engine")[0] == registry("reference")[0]


def test_operators_of_the_reference_mirror_those_of_the_engine() -> None:
    (_, columns), (_, reference) = registry("engine"), registry("reference")
    assert columns == reference
    modules = {path.stem for path in (PACKAGE / "reference" / "operators").glob("*.py")}
    assert modules - {"__init__", "protocol", "registry"} == reference


# What becomes less


def functions() -> Iterator[tuple[Path, Function]]:
    """Every function and method, wherever it is defined."""
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def is_participle(name: str) -> bool:
    """Whether the first word of a name is a past participle."""
    word = name.lstrip("_").partition("_")[0]
    if word in NO_PARTICIPLES | PREDICATES:
        return False
    return word in IRREGULAR.split() or (len(word) > 3 and word.endswith("ed"))


def test_a_participle_is_known() -> None:
    names = ("decoded_rows", "decode_rows", "_held", "held_rows", "feed", "read", "put", "finished")
    assert [name for name in names if is_participle(name)] == ["decoded_rows", "_held", "held_rows"]


def participle_functions() -> list[str]:
    """Functions named by a participle; a property is a value, and may be."""
    return [
        f"{place(path)}::{node.name}"
        for path, node in functions()
        if is_participle(node.name) and not any("property" in ast.unparse(mark) for mark in node.decorator_list)
    ]


def vague_bindings() -> list[str]:
    """Arguments and variables with a name that says nothing; fields of classes are names of another kind."""
    found = []
    for path in FILES:
        fields = {
            id(line.target)
            for node in ast.walk(tree(path))
            if isinstance(node, ast.ClassDef)
            for line in node.body
            if isinstance(line, ast.AnnAssign)
        }
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
                name, line = node.id, node.lineno
            elif isinstance(node, ast.arg):
                name, line = node.arg, node.lineno
            else:
                continue
            if name in VAGUE:
                found.append(f"{place(path)}:{line} {name}")
    return found


def module_questions() -> list[str]:
    """Modules whose docstring begins with a question, with or without its mark."""
    found = []
    for path in FILES:
        doc = ast.get_docstring(tree(path)) or ""
        first = doc.partition("\n")[0].rstrip()
        if first.endswith("?") or QUESTION_WORDS.match(first):
            found.append(place(path))
    return found


def shared_class_names() -> dict[str, list[str]]:
    """Class names that stand in several modules, but for one in the engine and one in the reference."""
    where: dict[str, list[str]] = defaultdict(list)
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                where[node.name].append(place(path))
    return {name: places for name, places in where.items() if len(places) > 1 and not are_mirrors(places)}


def are_mirrors(places: list[str]) -> bool:
    """Whether these are one place in the engine and one in the reference."""
    return sorted(path.split("/")[1] for path in places) == ["engine", "reference"]


@pytest.mark.parametrize(
    ("measure", "limit"),
    [
        (participle_functions, PARTICIPLE_LIMIT),
        (vague_bindings, VAGUE_BINDING_LIMIT),
        (module_questions, QUESTION_LIMIT),
        (shared_class_names, SHARED_CLASS_NAME_LIMIT),
    ],
)
def test_what_is_named_badly_becomes_less(measure: Callable[[], Collection[str]], limit: int) -> None:
    found = measure()
    assert len(found) <= limit, (
        f"{measure.__name__}: {len(found)}, and {limit} are allowed; among them {list(found)[:40]}"
    )
