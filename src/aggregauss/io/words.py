"""Words for the notes: plurals and short lists of names."""

from collections.abc import Sequence

SHOWN = 3


def several(n: int, what: str) -> str:
    """A number with its noun.

    >>> several(1, "pixel"), several(28877, "pixel")
    ('1 pixel', '28,877 pixels')
    """
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def listed(names: Sequence[str]) -> str:
    """The first few names in quotes, and how many more there are.

    >>> listed(["a", "b", "c", "d", "e"])
    '"a", "b", "c" and 2 more'
    """
    shown = ", ".join(f'"{name}"' for name in names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")


def first_line(problem: BaseException) -> str:
    """What an error says first, or else its kind.

    >>> first_line(ValueError("no such band\\nsee above")), first_line(EOFError())
    ('no such band', 'EOFError')
    """
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0]


def extent(bounds: Sequence[float]) -> str:
    """A box in words: west to east, south to north."""
    west, south, east, north = bounds
    return f"x {west:g} to {east:g}, y {south:g} to {north:g}"
