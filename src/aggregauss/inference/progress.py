"""When a noisy ascent has arrived."""

import dataclasses
from typing import Literal

import numpy as np

REDUCTIONS = 3


@dataclasses.dataclass
class Watch:
    """Compares two windows of the objective; when the later is no better, steps are reduced, and in the end stopped.

    No better means: by less than `tolerance`, or by less than the objective scatters within the windows.
    """

    tolerance: float
    since: int = 0  # epochs at the last reduction
    reductions: int = 0

    def look(self, history: list[float], steps_per_epoch: int) -> Literal["go", "slow", "stop"]:
        """What to do after this epoch."""
        window = 10 if steps_per_epoch < 5 else 5
        fresh = history[self.since :]
        if len(fresh) < 2 * window:
            return "go"
        before, after = np.array(fresh[-2 * window : -window]), np.array(fresh[-window:])
        scatter = np.sqrt((np.var(np.diff(before)) + np.var(np.diff(after))) / 2 / window)
        if np.median(after) - np.median(before) > max(self.tolerance, scatter):
            return "go"
        self.since = len(history)
        self.reductions += 1
        return "stop" if self.reductions > REDUCTIONS else "slow"
