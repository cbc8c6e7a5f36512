"""The copy that needs no server of ours: `python -m penstock.playground.static_site build/playground`.

The same pages, with the reference engine in the browser by Pyodide, and what the engine gave for every preset.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.playground.api import catalogue
from penstock.web.responses import pages_of

VERSION = "314.0.7"
INTEGRITY = "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
TAKEN = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
NOTICE = f"""Pyodide {VERSION}, unchanged, from the npm package pyodide.
Licence: Mozilla Public License 2.0. Source: https://github.com/pyodide/pyodide
It contains CPython, under the Python Software Foundation License.
"""
CSP = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"
)
# A process of its own plays everything, so that what it has loaded is what the browser needs.
LOADED = """
import json, sys
from penstock.playground.api import played
from penstock.playground.lessons import LESSONS
shown = [played(lesson.id, preset.values) for lesson in LESSONS.values() for preset in lesson.presets]
modules = {n: m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "penstock"}
print(json.dumps({"shown": shown, "modules": modules}, allow_nan=False))
"""


def site(out: Path) -> None:
    """The pages, the lessons, what the presets give, and the package; all but Pyodide."""
    out.mkdir(parents=True, exist_ok=True)
    for name, page in pages_of("penstock.playground").items():
        (out / name).write_bytes(page)
    shutil.copy(str(files("penstock.web").joinpath("static/vendor/LICENSE.uPlot.txt")), out)
    head = f'<meta charset="utf-8">\n    <meta http-equiv="Content-Security-Policy" content="{CSP}">'
    index = (out / "index.html").read_text("utf-8").replace('data-engine="server"', 'data-engine="browser"')
    (out / "index.html").write_text(index.replace('<meta charset="utf-8">', head), "utf-8")
    (out / "lessons.json").write_text(json.dumps(catalogue()), "utf-8")
    given = _played_apart()
    (out / "shown.json").write_text(json.dumps(given["shown"]), "utf-8")
    _package(out / "penstock.zip", given["modules"])


def _played_apart() -> dict[str, Any]:
    """What every preset gives, and which modules that needed."""
    said = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True).stdout
    given: dict[str, Any] = json.loads(said)
    return given


def _package(path: Path, modules: Mapping[str, str]) -> None:
    """The modules that the lessons need, always in the same bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in sorted(modules.items()):
            place = name.replace(".", "/") + ("/__init__.py" if file.endswith("__init__.py") else ".py")
            archive.writestr(zipfile.ZipInfo(place), Path(file).read_bytes(), zipfile.ZIP_DEFLATED)


def pyodide(out: Path, package: Path | None = None) -> None:
    """Pyodide, from a package that is there or from npm; only ever the pinned one."""
    with tempfile.TemporaryDirectory() as folder:
        archive = package or _fetched(Path(folder))
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if digest != INTEGRITY:
            raise PenstockError(
                f"{archive.name} is not the package that was pinned",
                f"its SHA-512 is {digest}, and that of pyodide {VERSION} is {INTEGRITY}",
                "remove the file and fetch it again; to use another version, change VERSION and INTEGRITY together",
            )
        (out / "pyodide").mkdir(exist_ok=True)
        with tarfile.open(archive) as held:
            for name in TAKEN:
                member = held.extractfile(f"package/{name}")
                assert member is not None
                (out / "pyodide" / name).write_bytes(member.read())
    (out / "pyodide" / "NOTICE.txt").write_text(NOTICE, "utf-8")


def _fetched(folder: Path) -> Path:
    try:
        subprocess.run(["npm", "pack", "--silent", f"pyodide@{VERSION}"], cwd=folder, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PenstockError(
            f"pyodide {VERSION} could not be fetched",
            f"npm pack: {error}",
            f"install npm, or name the package: python -m penstock.playground.static_site OUT pyodide-{VERSION}.tgz",
        ) from None
    return folder / f"pyodide-{VERSION}.tgz"


def main(arguments: list[str]) -> None:
    """Make the copy, and say how large it is."""
    if len(arguments) not in (1, 2):
        raise SystemExit("write: python -m penstock.playground.static_site OUT [pyodide.tgz]")
    out = Path(arguments[0])
    site(out)
    pyodide(out, Path(arguments[1]) if len(arguments) > 1 else None)
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    print(f"{out}: {size / 1e6:.1f} MB; any file server will do, such as: python -m http.server -d {out}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except PenstockError as error:
        raise SystemExit(f"error: {error}") from None
