"""Modules are named by words of the glossary, or by plain words that need no entry there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TERM = re.compile(r"^- \*\*(.+?)\*\*(?:, or \*\*(.+?)\*\*)?", re.MULTILINE)

# Words of any program, and names of other systems and formats. A word that means something special here goes into
# docs/glossary.md instead.
ORDINARY = """
api argument array arrow async avro axe back bad beam beside block bound bounded buffer builder byte cache call check
checksummed cli client code column columnar command compare compatibility compiled condition console constant consumer
context control copy crash credential csv custom dashboard data dataframe decode delay demo diagnostic display
distinct doc duckdb embedded encoding error exact expectation explain feed figure file foreach format from game goal
group hadoop handle histogram humanize in init input isolate json kafka kappa kill label lambda last legend library
librdkafka lifecycle limit line listing load loader local main mark markup matcher maven max metadata min n node
numeric observability option ordered other overload panel parquet parser penstock picture play player plugin png port
postgres processor producer prometheus protocol proxy pytest query rate read reason record recording redirect regroup
response result retractable retry sample schedule score scripted seen server sharded signal simulation site size
sorting spark sql sqlite startup static storage store style sum summary svg testing text thinning top traced
translation two type ui uniform unknown unusable unwritten user value variance view watcher web windowed
"""


def singular(word: str) -> str:
    """A word without the ending of its plural."""
    for plural, ending in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("ss", "ss"), ("s", "")):
        if word.endswith(plural):
            return word.removesuffix(plural) + ending
    return word


def module_words() -> dict[str, str]:
    """Each word in the name of a module or package, and one of the files that have it."""
    words = {}
    for path in sorted((ROOT / "penstock").rglob("*.py")):
        name = path.parent.name if path.stem == "__init__" else path.stem
        words.update({singular(word): path.relative_to(ROOT).as_posix() for word in name.strip("_").split("_")})
    return words


def glossary_words() -> set[str]:
    """Each word of the terms that the glossary explains."""
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    terms = [term for entry in TERM.findall(text) for term in entry]
    return {singular(word) for term in terms for word in re.findall(r"[a-z]+", term.lower())}


def test_module_names_are_words_of_the_glossary() -> None:
    known = glossary_words() | set(map(singular, ORDINARY.split()))
    unknown = {word: path for word, path in module_words().items() if word not in known}
    assert unknown == {}, "explain the word in docs/glossary.md, or choose one that is there"


def test_no_ordinary_word_is_in_the_glossary() -> None:
    assert set(map(singular, ORDINARY.split())) & glossary_words() == set()


def test_each_term_names_a_module() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    for entry in re.split(r"^- (?=\*\*)", text, flags=re.MULTILINE)[1:]:
        paths = re.findall(r"`((?:penstock|tests)/[\w/]+\.py)`", entry.partition("\n\n")[0])
        assert paths, entry
        assert [path for path in paths if not (ROOT / path).exists()] == []
