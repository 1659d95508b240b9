"""A table of individuals with a region column, and a table of what was observed in each region."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportOptionalSubscript=false, reportReturnType=false
# (tables and geometries: the declared types of pandas and exactextract are wider than what they return)

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregauss.io.pixel_record import Pixels
from aggregauss.io.tables import column, not_negative, numbers, read_table, texts
from aggregauss.io.words import listed, several

if TYPE_CHECKING:
    import pandas as pd

WHO = "read_individuals"


def read_individuals(
    table: Any,
    responses: Any,
    response: str,
    *,
    region: str,
    covariates: Sequence[str] = (),
    coordinates: Sequence[str] = (),
    weights: str | None = None,
    examined: str | None = None,
    counts: bool = True,
    notes: list[str],
) -> Pixels:
    """Rows of `table` as individuals of the regions that its column `region` names.

    `responses` has one row for each region, with the columns `region` and `response` (and `examined`); both tables are
    CSV, Parquet, or a DataFrame. Rows whose region was not observed stay in the map, without a region. `weights` is the
    column of persons that a row stands for, by default one.

    >>> import pandas as pd
    >>> people = pd.DataFrame({"ward": ["a", "a", "b"], "age": [20.0, 40.0, 60.0]})
    >>> cases = pd.DataFrame({"ward": ["a", "b"], "cases": [1, 2]})
    >>> read_individuals(people, cases, "cases", region="ward", covariates=["age"], notes=[]).bags()
    Bags(2 in 1-d, totals (extensive), 3 atoms)
    """
    rows = read_table(table, WHO, "table", [region])
    regions = _observed(read_table(responses, WHO, "responses", [region]), response, region, examined, counts)
    if not len(covariates) + len(coordinates):
        raise ValueError(f'{WHO}: give the columns of "covariates" or of "coordinates".')
    owner, named = _owners(column(rows, region, WHO, "region"), regions)
    numbered = [f"row {i}" for i in range(len(rows))]
    weight = np.ones(len(rows))
    if weights is not None:
        weight = not_negative(numbers(column(rows, weights, WHO, "weights"), WHO, numbered), weights, WHO, numbered)
    _check_masses(owner, weight, regions)
    if not named.all():
        notes.append(f"{several(int((~named).sum()), 'row')} of regions without a response: predicted, but not fitted.")
    order = np.argsort(owner[named], kind="stable")
    return Pixels(
        _matrix(rows, coordinates, "coordinates", numbered),
        _matrix(rows, covariates, "covariates", numbered),
        tuple(covariates),
        weight,
        np.arange(len(rows)),
        None,
        owner[named][order],
        np.flatnonzero(named)[order],
        np.ones(int(named.sum())),
        regions,
        tuple(notes),
    )


def _observed(table: "pd.DataFrame", response: str, region: str, examined: str | None, counts: bool) -> "pd.DataFrame":
    import pandas as pd

    labels = texts(column(table, region, WHO, "region"), WHO)
    if labels.duplicated().any():
        twice = labels[labels.duplicated()].iloc[0]
        raise ValueError(f'{WHO}: "responses" must have one row for each region, but has "{twice}" twice.')
    rows = [f'region "{label}"' for label in labels]
    made = {"label": labels, "observed": numbers(column(table, response, WHO, "response"), WHO, rows)}
    if counts:
        not_negative(made["observed"], response, WHO, rows)
    if examined is not None:
        made["examined"] = not_negative(
            numbers(column(table, examined, WHO, "examined"), WHO, rows), examined, WHO, rows
        )
    return pd.DataFrame(made)


def _owners(names: "pd.Series", regions: "pd.DataFrame") -> tuple[np.ndarray, np.ndarray]:
    """Number of the region of each row, and which rows have one."""
    import pandas as pd

    owner = pd.Index(regions["label"]).get_indexer(texts(names, WHO))
    return owner, owner >= 0


def _check_masses(owner: np.ndarray, weight: np.ndarray, regions: "pd.DataFrame") -> None:
    mass = np.bincount(owner[owner >= 0], weight[owner >= 0], minlength=len(regions))
    if (mass <= 0).any():
        names = [str(label) for label in regions["label"][mass <= 0]]
        raise ValueError(f"{WHO}: {several(len(names), 'region')} without any individual that counts: {listed(names)}.")


def _matrix(table: "pd.DataFrame", names: Sequence[str], argument: str, rows: list[str]) -> np.ndarray:
    columns = [numbers(column(table, name, WHO, argument), WHO, rows) for name in names]
    return np.column_stack(columns) if columns else np.zeros((len(table), 0))
