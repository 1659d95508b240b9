"""Tables on a terminal."""

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd


def as_table(frame: "pd.DataFrame", title: str) -> Table:
    """A data frame with a title, numbers to the right."""
    table = Table(title=escape(title), title_justify="left")
    for name in frame.columns:
        table.add_column(escape(str(name)), justify="right" if frame[name].dtype.kind in "fi" else "left")
    for row in frame.itertuples(index=False):
        table.add_row(*(_cell(value) for value in row))
    return table


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return escape(str(value))  # names are no markup
