"""The page: template, styles, scripts and data put together into one file that needs nothing else."""

import base64
import hashlib
import html
import re
from importlib import resources
from pathlib import Path

from aggregauss.files import whole_file
from aggregauss.report.data import ReportData
from aggregauss.report.payload import payload
from aggregauss.report.plain import script_safe

SCRIPTS = (
    "dom", "numbers", "scale", "colours", "inflate", "raster", "regions", "layers", "selection", "view", "legend",
    "scalebar", "readout", "pointer", "map", "maps", "chart", "scatter", "calibration", "effects", "trace", "table",
    "lists", "main",
)  # fmt: skip


def write_page(data: ReportData, path: str | Path) -> None:
    """Write the report to `path`: one html file that works offline. Nothing is left behind if it fails."""
    with whole_file(path) as part:
        part.write_text(page(data), encoding="utf-8")


def page(data: ReportData) -> str:
    """The text of the page. Its policy lets a browser run this very script and style, and fetch nothing."""
    style = _template("page.css")
    script = '"use strict";\n{\n' + "\n".join(_template(f"{name}.js") for name in SCRIPTS) + "}\n"
    parts = {
        "title": html.escape(data.title),
        "policy": f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'",
        "style": style,
        "data": script_safe(payload(data)),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _template("page.html"))


def _template(name: str) -> str:
    return (resources.files("aggregauss.report") / "template" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
