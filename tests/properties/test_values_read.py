"""Every reader reads what Python's own library reads of the same bytes, or names the field, beside any neighbours."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from tests.properties import avro_by_hand, values_by_python as by_python
from tests.properties.hostile_values import KINDS, Line, good, json_line, plain
from tests.properties.parquet_values import PARQUET
from tests.properties.profile import law
from tests.properties.reading_bytes import Files, Messages, Outcome
from tests.properties.values_by_python import Verdict

Read = Callable[[Sequence[bytes]], list[Outcome | None]]
SEEDS = st.integers(0, 2**48)
TORN = b'{"v": "torn'
LONG = b'{"other":"' + b"x" * 100_000 + b'"}'


def files_of_json(where: Path, kind: str) -> Read:
    """Lines as a file of a directory."""
    reader = Files(where, f"v {kind}, n long", "json")

    def read(lines: Sequence[bytes]) -> list[Outcome | None]:
        found = reader(b"\n".join(lines))
        at, places = 0, []
        for line in lines:
            places.append(at)
            at += len(line) + 1
        assert set(found) <= set(places)
        return [found.get(place) for place in places]

    return read


def messages_of_json(where: Path, kind: str) -> Read:
    """Lines as messages."""
    del where
    return Messages(f"v {kind}, n long")


def neighbourhoods(rng: Random, lines: Sequence[Line]) -> Iterator[tuple[str, list[bytes], list[int]]]:
    """Blocks of lines: what they are called, the lines, and which of the lines in question stands where (-1: none)."""
    for at, line in enumerate(lines):
        yield "alone", [line.data], [at]
        yield "among 40 like it", [line.like] * 20 + [line.data] + [line.like] * 20, [-1] * 20 + [at] + [-1] * 20
        way = rng.randrange(5)
        if way == 0:
            yield "behind a torn line", [TORN, line.data, line.like], [-1, at, -1]
        if way == 1:
            yield "behind a long line", [LONG, line.data, *[line.like] * 20], [-1, at, *[-1] * 20]
        if way == 2:
            yield "forty times", [line.data] * 40, [at] * 40
        if way == 3:
            yield "first of 3", [line.data, line.like, line.like], [at, -1, -1]
        if way == 4:
            yield "first of 50, the last torn", [line.data, *[line.like] * 50, TORN], [at, *[-1] * 51]
    mixed = [(line.data, at) for at, line in enumerate(lines)] + [(line.like, -1) for line in lines * 3]
    rng.shuffle(mixed)
    yield "mixed", [data for data, _ in mixed], [at for _, at in mixed]


def judged(read: Read, rng: Random, kind: str, lines: Sequence[Line]) -> Iterator[str]:
    """What is wrong with the reading of some lines."""
    kinds = {"v": kind, "n": "long"}
    verdicts = [by_python.json_line(line.data, kinds) for line in lines]
    first: dict[int, tuple[str, Outcome | None]] = {}
    for name, block, places in neighbourhoods(rng, lines):
        for at, outcome in zip(places, read(block), strict=True):
            if at < 0:
                continue
            shown = f"{kind}: {shortened(lines[at].data)} {name}"
            wrong = against(outcome, verdicts[at])
            if wrong:
                yield f"{shown}: {wrong}"
            earlier, met = first.setdefault(at, (name, outcome))
            if not alike(outcome, met):
                yield f"{shown}: {briefly(outcome)}, but {earlier}: {briefly(met)}"


def against(outcome: Outcome | None, verdict: dict[str, Verdict] | Verdict | None) -> str | None:
    """Why an outcome is none that the oracle allows."""
    if outcome is None or verdict is None:
        blank = outcome is None or (outcome[0] == "bad" and "is empty" in outcome[1])
        return None if blank and verdict is None else f"{briefly(outcome)} instead of {verdict}"
    what, found = outcome
    if isinstance(verdict, Verdict):
        return None if what == "bad" and found else f"{briefly(outcome)}, which is no line of JSON within the limits"
    bad = [name for name, one in verdict.items() if not one.good]
    unsure = [name for name, one in verdict.items() if one.good and not one.sure]
    if what == "bad":
        if not bad and not unsure:
            return f"quarantined ({briefly(outcome)}) instead of {verdict}"
        whole = any(not one.sure and not one.field for one in verdict.values())  # then no part of it may be readable
        if not whole and not any(f"column {name!r}" in found for name in bad + unsure):
            return f"the reason {found!r} does not name {bad or unsure}"
        return None
    if bad:
        return f"{briefly(outcome)}, but {bad} is none"
    for name, one in verdict.items():
        if not by_python.same(found[name], one.value):
            return f"{name} is {found[name]!r} instead of {one.value!r}"
    return None


def alike(left: Outcome | None, right: Outcome | None) -> bool:
    """Whether two outcomes are one."""
    if left is None or right is None or left[0] != right[0] or left[0] == "bad":
        return (left and left[0]) == (right and right[0])
    return all(by_python.same(value, right[1][name]) for name, value in left[1].items())


def shortened(data: bytes) -> str:
    """Bytes on a line."""
    return repr(data) if len(data) <= 200 else f"{data[:100]!r}…{data[-60:]!r} ({len(data):,} bytes)"


def briefly(outcome: Outcome | None) -> str:
    """An outcome on a line."""
    return "nothing" if outcome is None else f"{outcome[0]} {str(outcome[1])[:200]}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the files lie."""
    return tmp_path_factory.mktemp("values")


@law(25, part=4)
@given(SEEDS)
@pytest.mark.parametrize("source", [files_of_json, messages_of_json])
def test_json_is_read_as_python_reads_it(folder, source, seed):
    rng = Random(seed)
    kind = rng.choice(KINDS)
    read = reader(source, folder, kind)
    assert list(judged(read, rng, kind, [json_line(rng, kind) for _ in range(12)])) == []


@law(20, part=4)
@given(SEEDS)
@pytest.mark.parametrize("header", [True, False])
def test_csv_is_read_as_python_reads_it(folder, header, seed):
    rng = Random(seed)
    kind = rng.choice(KINDS)
    assert list(judged_csv(csv_reader(folder, kind, header), rng, kind, [field(rng, kind) for _ in range(12)])) == []


def field(rng: Random, kind: str) -> str:
    """A field of CSV as it is written: with quotes or without."""
    some = "".join(sign for sign in plain(rng, kind) if not "\ud800" <= sign <= "\udfff")
    some = some.lstrip("\ufeff")  # a mark at the very beginning of a file is none of its first field
    if rng.random() < 0.1:
        some = rng.choice(("", "NULL", "null", "NA", "N/A", "#N/A", "nan", "-", "''"))
    if rng.random() < 0.25 or any(sign in some for sign in ',"\r\n'):
        some = '"' + some.replace('"', '""') + '"'
    return some


def judged_csv(read: Files, rng: Random, kind: str, fields: Sequence[str]) -> Iterator[str]:
    """What is wrong with the reading of some records, each with its number after the field."""
    first: dict[int, tuple[str, Outcome | None]] = {}
    for name, block, places in csv_neighbourhoods(rng, kind, fields):
        data = ("v,n\n" if "header" not in read.options else "") + "".join(block)
        found = read(data.encode())
        for number, at in enumerate(places):
            if at < 0:
                continue
            shown = f"{kind}: {fields[at][:100]!r} {name}"
            wrong = against(found.get(number), {"v": csv_verdict(fields[at], kind), "n": by_python.must(7)})
            if wrong:
                yield f"{shown}: {wrong}"
            earlier, met = first.setdefault(at, (name, found.get(number)))
            if not alike(found.get(number), met):
                yield f"{shown}: {briefly(found.get(number))}, but {earlier}: {briefly(met)}"


def csv_verdict(field: str, kind: str) -> Verdict:
    """What a field stands for: Python's own module reads the quotes; a field without any is null if it is empty."""
    text, _ = next(csv.reader(io.StringIO(f"{field},7\n", newline="")))
    return by_python.csv_field(text if text or field.startswith('"') else None, kind)


def csv_neighbourhoods(rng: Random, kind: str, fields: Sequence[str]) -> Iterator[tuple[str, list[str], list[int]]]:
    """Files of records, as those of lines are made."""
    end = rng.choice(("\n", "\n", "\r\n"))
    records = [f"{field},7{end}" for field in fields]
    plainly = [f"{csv_good(rng, kind)},7{end}" for _ in range(40)]
    for at, record in enumerate(records):
        yield "alone", [record], [at]
        yield "among 40", [*plainly[:20], record, *plainly[20:]], [-1] * 20 + [at] + [-1] * 20
        way = rng.randrange(5)
        if way == 0:
            yield "behind a record that is too short", [f"x{end}", record], [-1, at]
        if way == 1:
            yield "beside NUL", [record, f'"\0",7{end}', record], [at, -1, at]
        if way == 2:
            yield "forty times", [record] * 40, [at] * 40
        if way == 3:
            yield "behind a long one", [f'"{"x" * 100_000}",7{end}', record, *plainly], [-1, at, *[-1] * 40]
        if way == 4:
            yield "before a quote that is never closed", [record, *plainly, '"x'], [at, *[-1] * 41]
    mixed = [(record, at) for at, record in enumerate(records)] + [(record, -1) for record in plainly]
    rng.shuffle(mixed)
    yield "mixed", [record for record, _ in mixed], [at for _, at in mixed]


def csv_good(rng: Random, kind: str) -> str:
    """A field that is surely of a type."""
    return good(rng, kind).strip('"')


@law(25, part=4)
@given(SEEDS)
def test_avro_is_read_as_its_specification_says(seed):
    rng = Random(seed)
    kind = rng.choice(avro_by_hand.KINDS)
    null = rng.choice((None, 0, 1))
    values = [avro_value(rng, kind, null) for _ in range(12)]
    assert list(judged_avro(rng, kind, null, values)) == []


def avro_value(rng: Random, kind: avro_by_hand.Kind, null: int | None) -> tuple[bytes, Verdict]:
    """A value, perhaps one of a union with null, perhaps torn."""
    data, verdict = avro_by_hand.value(rng, kind)
    if null is not None:
        branch = rng.choice((0, 1, 1 - null, 1 - null, 1 - null, 2, -1, 2**40))
        if branch not in (0, 1):
            return avro_by_hand.zigzag(branch) + data, by_python.NO_LINE
        data, verdict = (b"", by_python.NULL) if branch == null else (data, verdict)
        data = avro_by_hand.zigzag(branch) + data
    return data, verdict


def judged_avro(
    rng: Random, kind: avro_by_hand.Kind, null: int | None, values: Sequence[tuple[bytes, Verdict]]
) -> Iterator[str]:
    """What is wrong with the reading of values: alone and among others, in a flat record and in one that is not."""
    one = kind.avro if null is None else [kind.avro, kind.avro]
    if null is not None:
        one[null] = "null"
    head = avro_by_hand.sized(b"head")
    good = next((data for data, verdict in values if verdict.good and verdict.sure), None)
    first: dict[int, tuple[str, Outcome]] = {}
    tags = {"name": "tags", "type": {"type": "array", "items": "string"}}
    for tail, more in ((b"", []), (b"\0", [tags]), (b"\3\6\2a\2b\0", [tags])):
        fields = [{"name": "n", "type": "string"}, {"name": "v", "type": one}, *more]
        schema = {"type": "record", "name": "R", "fields": fields}
        read = Messages(f"v {kind.column}, n string", "avro", avro_schema=schema)
        records = [head + data + tail for data, _ in values]
        blocks = [("alone", [record], [at]) for at, record in enumerate(records)]
        torn = [some for record in records for some in (record, record[:-1], record + b"\7")]
        blocks.append(("mixed with torn ones", torn, [n for at in range(len(records)) for n in (at, -1, -1)]))
        if good is not None:
            like = [head + good + tail] * 20
            blocks += [
                ("among 40", [*like, record, *like], [*[-1] * 20, at, *[-1] * 20]) for at, record in enumerate(records)
            ]
        for name, block, places in blocks:
            for at, outcome in zip(places, read(block), strict=True):
                if at < 0:
                    continue
                data, verdict = values[at]
                shown = f"{fields[1:]} as {kind.column}: {shortened(data)} {name}"
                expected = verdict if verdict is by_python.NO_LINE else {"v": verdict, "n": by_python.must("head")}
                wrong = against(outcome, expected)
                if wrong:
                    yield f"{shown}: {wrong}"
                earlier, met = first.setdefault(at, (name, outcome))
                if not alike(outcome, met):
                    yield f"{shown}: {briefly(outcome)}, but {earlier}: {briefly(met)}"


@law(20, part=4)
@given(SEEDS)
@pytest.mark.parametrize("value", ["text", "bytes"])
def test_text_and_bytes_of_messages_are_what_they_are(value, seed):
    rng = Random(seed)
    values: list[bytes | None] = [b"", None, *(text_bytes(rng) for _ in range(rng.choice((1, 10, 50))))]
    for one, (what, found) in zip(values, Messages(None, value)(values), strict=True):
        if value == "bytes" or one is None:
            assert (what, found) == ("row", {"value": one})
        elif is_utf8(one):
            assert (what, found) == ("row", {"value": one.decode()})
        else:
            assert what == "bad"
            assert "the value" in found


def text_bytes(rng: Random) -> bytes:
    """Bytes that are text, or nearly."""
    data = plain(rng, "string").encode("utf-8", "surrogatepass")
    return data + rng.choice((b"", b"", b"", b"\xff", b"\xc3", b"\0"))


def is_utf8(data: bytes) -> bool:
    """Whether Python reads it."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@law(20, part=4)
@given(SEEDS)
def test_parquet_is_read_as_its_types_say(folder, seed):
    rng = Random(seed)
    kind, column, draw = rng.choice(PARQUET)
    pairs = [(None, by_python.NULL) if rng.random() < 0.05 else draw(rng) for _ in range(rng.choice((1, 5, 20, 80)))]
    read = parquet_reader(folder, kind)
    found = read.rows(pa.table({"v": pa.array([value for value, _ in pairs], column)}), rng.choice((1, 7, 1_000)))
    wrong = [
        f"{column} as {kind}: {value!r}: {why}"
        for at, (value, verdict) in enumerate(pairs)
        if (why := against(found.get(at), {"v": verdict}))
    ]
    assert wrong == []
    # Each alone is what it is among the others.
    for at in rng.sample(range(len(pairs)), min(3, len(pairs))):
        alone = read.rows(pa.table({"v": pa.array([pairs[at][0]], column)}), 1)
        assert alike(alone.get(0), found.get(at)), (column, kind, pairs[at])


@cache
def reader(source: Callable[[Path, str], Read], where: Path, kind: str) -> Read:
    """A reader of a type, made once."""
    return source(where / f"{source.__name__}-{kind}", kind)


@cache
def csv_reader(where: Path, kind: str, header: bool) -> Files:
    """The same of CSV."""
    return Files(where / f"csv-{kind}-{header}", f"v {kind}, n long", "csv", **({} if header else {"header": False}))


@cache
def parquet_reader(where: Path, kind: str) -> Files:
    """The same of Parquet."""
    return Files(where / f"parquet-{kind}", f"v {kind}", "parquet")
