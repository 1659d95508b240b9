"""Memory that was freed goes back to the system, even below what is still in use."""

import ctypes
from pathlib import Path

import pytest

from aggregauss import heap

PIECE, PIECES = 8192, 16_384  # 128 MiB in pieces that the C library takes from its heap


def resident() -> int:
    """MiB of this process that are in memory."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("RssAnon"))
    return int(line.split()[1]) // 1024


@pytest.mark.skipif(heap._trim is None, reason="the C library has no malloc_trim")
def test_freed_pages_below_a_piece_in_use_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    pieces = [ctypes.c_void_p(libc.malloc(PIECE)) for _ in range(PIECES)]
    for piece in pieces:
        ctypes.memset(piece, 1, PIECE)
    for piece in pieces[:-1]:
        libc.free(piece)
    kept = resident()
    monkeypatch.setattr(heap, "_next", 0.0)
    heap.give_back()
    assert kept - resident() > 100
    libc.free(pieces[-1])


def test_a_second_call_at_once_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(heap, "_trim", calls.append)
    monkeypatch.setattr(heap, "_next", 0.0)
    heap.give_back()
    heap.give_back()
    assert len(calls) == 1
