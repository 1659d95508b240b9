"""A surface as a short text.

    code = 1 + round((t(value) - low) / step),   0 = no value,   t = log for layers on a log scale

in 16 bits, as differences along the rows, low bytes before high bytes, gzip, base64.
"""

import base64
import gzip
from typing import Any

import numpy as np

from aggregauss.report.data import Layer

LARGEST = 1200  # rows or columns that a page can still draw quickly
CODES = 65534


def thin(values: np.ndarray, block: int) -> np.ndarray:
    """Means over blocks of `block` x `block` pixels, of the pixels that have a value.

    >>> thin(np.array([[1.0, 3.0, 5.0], [np.nan, 2.0, np.nan]]), 2)
    array([[2., 5.]])
    """
    rows, columns = (-(-size // block) for size in values.shape)
    padded = np.full((rows * block, columns * block), np.nan)
    padded[: values.shape[0], : values.shape[1]] = values
    blocks = padded.reshape(rows, block, columns, block)
    known = np.isfinite(blocks)
    count = known.sum((1, 3))
    total = np.where(known, blocks, 0.0).sum((1, 3))
    return np.where(count, total / np.maximum(count, 1), np.nan)


def thin_cells(cell: np.ndarray, values: np.ndarray, shape: tuple[int, int], block: int) -> np.ndarray:
    """The same of some cells of a grid, numbered row · columns + column, without an image of the whole grid.

    >>> thin_cells(np.array([0, 1, 2, 4]), np.array([1.0, 3.0, 5.0, 2.0]), (2, 3), 2)
    array([[2., 5.]])
    """
    rows, columns = (-(-size // block) for size in shape)
    row, column = np.divmod(cell, shape[1])
    known = np.isfinite(values)
    at = ((row // block) * columns + column // block)[known]
    count, total = np.bincount(at, minlength=rows * columns), np.bincount(at, values[known], minlength=rows * columns)
    return np.where(count, total / np.maximum(count, 1), np.nan).reshape(rows, columns)


def block_size(shape: tuple[int, int]) -> int:
    """Side of the blocks that bring a grid down to what a page can draw."""
    return -(-max(shape) // LARGEST)


def encode(layer: Layer) -> dict[str, Any]:
    """The layer for the page. Values of zero or below cannot be on a log scale: such a layer is drawn on a linear one.

    >>> packed = encode(Layer("mean", np.array([[1.0, 100.0], [np.nan, 10.0]]), "", "log", ""))
    >>> packed["scale"], packed["low"], round(packed["step"] * CODES, 6)
    ('log', 0.0, 4.60517)
    """
    known = np.isfinite(layer.values)
    scale = layer.scale
    if scale == "log" and (layer.values[known] <= 0).any():
        scale = "sequential"
    transformed = np.log(layer.values[known]) if scale == "log" else layer.values[known].astype(np.float64)
    low, high = (float(transformed.min()), float(transformed.max())) if transformed.size else (0.0, 0.0)
    step = (high - low) / CODES
    codes = np.zeros(layer.values.shape, np.uint16)
    codes[known] = 1 + np.rint((transformed - low) / (step or 1.0))
    return {
        "name": layer.name,
        "unit": layer.unit,
        "about": layer.about,
        "scale": scale,
        "low": low,
        "step": step,
        "codes": _text(codes),
    }


def _text(codes: np.ndarray) -> str:
    differences = np.diff(codes, axis=1, prepend=np.uint16(0)).astype("<u2")
    planes = differences.reshape(-1).view(np.uint8).reshape(-1, 2).T
    return base64.b64encode(gzip.compress(planes.tobytes(), 6, mtime=0)).decode()
