"""`aggregauss demo`: the whole job on the malaria cases of Madagascar."""

import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape

import aggregauss as ag
from aggregauss.cli.tables import as_table
from aggregauss.maps import Settings, fit_pixels, read_map, validate
from aggregauss.maps.record import run_record

TITLE = "Malaria in Madagascar"


def run(out: Path, overwrite: bool) -> None:
    """The check from regions to districts, then the map of all districts with its page."""
    console, began = Console(), time.perf_counter()
    files, settings = ag.datasets.madagascar(), Settings()
    sources = {"regions": files.districts, "population": files.population}
    record = run_record(sources, files.covariates, arguments={"response": "cases"})
    with console.status("reading 109 districts and four rasters"), record.timed("read"):
        pixels, regions = read_map(files.districts, "cases", files.population, files.covariates, groups="region")
    console.print(f"{pixels!r}")
    console.print("1. The honest check: fitted to the 22 regions only, scored on the 109 districts that they hide.")
    checked = validate(pixels, settings, groups=regions)
    console.print(as_table(checked.scores.reset_index(names=""), f"Districts not seen, {checked.how}"))
    console.print("2. The map: fitted to all districts.")
    found = fit_pixels(pixels, settings, record)
    found.save(out, validation=checked, title=TITLE, overwrite=overwrite)
    console.print(as_table(found.table().head(8), "First districts"))
    page = escape(str(out / "report.html"))
    console.print(
        f"Done in {time.perf_counter() - began:.0f} s. Open [bold]{page}[/] in a browser; rasters and tables are "
        "beside it. The data are by the Malaria Atlas Project (CC BY) and Nandi et al. (2023)."
    )
