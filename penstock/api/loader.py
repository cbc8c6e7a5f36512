"""Which pipeline is meant by FILE, FILE:NAME or module:name: the file is run, and what it made is looked at."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from penstock.api.pipeline import Pipeline
from penstock.errors import PenstockError, did_you_mean

_NAME = "penstock_pipeline_file"


class LoadError(PenstockError):
    """There is no such file, it does not run, or the pipeline is not in it."""


def load(given: str) -> Pipeline:
    """The pipeline that a word on the command line means."""
    path, name = _parted(given)
    is_file = path.endswith(".py") or Path(path).is_file() or not all(map(str.isidentifier, path.split(".")))
    return _chosen(path, name, _pipelines(_run(path) if is_file else _imported(path)))


def _parted(given: str) -> tuple[str, str]:
    """The file or module, and the name behind the colon; a colon of a drive letter is none."""
    path, colon, name = given.rpartition(":")
    return (path, name) if colon and not {"/", "\\"} & set(name) and not name.endswith(".py") else (given, "")


def _pipelines(module: ModuleType) -> dict[str, Pipeline]:
    return {name: value for name, value in vars(module).items() if isinstance(value, Pipeline)}


def _chosen(path: str, name: str, found: dict[str, Pipeline]) -> Pipeline:
    if not found:
        raise LoadError(
            f"there is no pipeline in {path}",
            "a pipeline is what ps.pipeline(...) gives, kept in a variable of the file",
            f'write team_scores = ps.pipeline("team-scores", totals.write(ps.console())) in {path}',
        )
    if name:
        named = {**{one.name: one for one in found.values()}, **found}
        if name not in named:
            raise LoadError(
                f"there is no pipeline {name!r} in {path}",
                f"it has: {', '.join(found)}",
                did_you_mean(name, named),
            )
        return named[name]
    different = {id(one): variable for variable, one in found.items()}
    if len(different) > 1:
        names = list(different.values())
        raise LoadError(
            f"{path} has {len(names)} pipelines: {', '.join(names)}",
            "one command runs one of them",
            f"say which: {path}:{names[0]}",
        )
    return next(iter(found.values()))


def _run(path: str) -> ModuleType:
    """A file run as Python, under a name that is not `__main__` and that is forgotten afterwards.

    Spark's workers cannot import the file by a name; so its functions must travel whole, as cloudpickle sends those
    of a module that is not to be found.
    """
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        near = sorted(str(one) for one in Path(path).parent.glob("*.py")) if missing else []
        raise LoadError(
            f"there is no file {path}" if missing else f"the file {path} cannot be read: {error.strerror}",
            "a pipeline is read from a file of Python or an importable module",
            did_you_mean(path, near, "write penstock init to make one that runs as it is"),
        ) from None
    module = ModuleType(_NAME)
    module.__file__ = os.path.abspath(path)
    _let_import(str(Path(path).resolve().parent))
    sys.modules[_NAME] = module
    try:
        with _explained(path):
            exec(compile(source, module.__file__, "exec"), vars(module))
    finally:
        del sys.modules[_NAME]
    return module


def _imported(path: str) -> ModuleType:
    _let_import(os.getcwd())
    try:
        with _explained(path):
            return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{path}.".startswith(f"{error.name}."):
            raise
        raise LoadError(
            f"there is no module {path}",
            "a pipeline is read from a file of Python or an importable module",
            f"write {path}.py if it is a file" if Path(f"{path}.py").is_file() else "write the path of the file",
        ) from None


def _let_import(folder: str) -> None:
    """Let the file import its neighbours, here and in Spark's workers."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    paths = os.environ.get("PYTHONPATH", "")
    if folder not in paths.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *([paths] if paths else [])])


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Say in which line of the user's file it went wrong."""
    try:
        yield
    except PenstockError as error:
        place = _place(error, path)
        if place:
            error.add_note(place)
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and not _place(error, path):
            raise
        said = " ".join(str(error).split())
        told = LoadError(
            f"{path} does not run: {type(error).__name__}" + (f": {said[:400]}" if said else ""),
            "the file is run as Python to find its pipeline",
            "mend that line; PENSTOCK_DEBUG=1 shows the whole traceback",
        )
        place = _place(error, path)
        if place:
            told.add_note(place)
        raise told from error


def _place(error: BaseException, path: str) -> str:
    """The innermost line of the file that the error came through."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {(error.text or '').strip()}"
    file = os.path.abspath(path)
    frames = [one for one in traceback.extract_tb(error.__traceback__) if os.path.abspath(one.filename) == file]
    return f"{path}, line {frames[-1].lineno}: {(frames[-1].line or '').strip()}" if frames else ""
