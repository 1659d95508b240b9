"""Values as JSON knows them: no NaN, no arrays, no paths, and text that cannot end the element that holds it."""

import functools
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


@functools.singledispatch
def plain(value: Any) -> Any:
    """`value` made of dicts, lists, text, numbers and None; what JSON does not know becomes text.

    >>> plain({"a": np.array([1.0, np.nan]), 2: (np.int64(3), True)})
    {'a': [1.0, None], '2': [3, True]}
    """
    return str(value)


plain.register(str | int | None, lambda value: value)
plain.register(float, lambda value: value if math.isfinite(value) else None)
plain.register(np.ndarray | np.generic, lambda value: plain(value.tolist()))
plain.register(list | tuple | set | frozenset, lambda value: [plain(item) for item in value])
plain.register(Mapping, lambda value: {str(key): plain(item) for key, item in value.items()})


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON that any reader takes: strict, and of values of any kind.

    >>> json_text({"seed": np.int64(3), "score": -np.inf})
    '{"seed": 3, "score": null}'
    """
    return json.dumps(plain(value), allow_nan=False, indent=indent)


def frame(table: "pd.DataFrame") -> dict[str, Any]:
    """A table as its column names and rows."""
    columns = [plain(table[name].to_numpy(dtype=object, na_value=None)) for name in table.columns]
    return {"columns": [str(name) for name in table.columns], "rows": [list(row) for row in zip(*columns)]}


def script_safe(value: Any) -> str:
    """JSON that may stand inside a script element, whatever the text in it.

    >>> script_safe("</script>&")
    '"\\\\u003c/script\\\\u003e\\\\u0026"'
    """
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
