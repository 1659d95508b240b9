"""Robot speed from distances travelled (Smith, Alvarez and Lawrence 2019, section 5.1 and Table 1)."""

import numpy as np
from common import arguments, page, table

import aggregauss as ag

WINDOWS = ag.Intervals(lo=[0, 2.5, 4, 7], hi=[8, 3.5, 6, 8], measure="total")
DISTANCE = np.array([33.47, 3.49, 9.56, 8.27])


def fit(mean: ag.Constant | None) -> ag.Posterior:
    """Maximum likelihood from several starts."""
    return ag.GP(ag.RBF(), mean=mean).fit(WINDOWS, DISTANCE, inference=ag.Exact(restarts=8))


def figures(post: ag.Posterior) -> list[str]:
    """The paper's quantities, in its convention exp(-d²/ℓ²)."""
    at_5s = post.predict(ag.Points([5.0]), kind="observation")
    kernel = post.model.kernel
    return [
        f"{float(kernel.variance):.2f}",
        f"{float(kernel.lengthscale) * np.sqrt(2):.3f}",
        f"{float(post.model.likelihood.variance):.3f}",
        f"{-post.evidence:.3f}",
        f"{at_5s.mean[0]:.3f} ± {1.96 * at_5s.std[0]:.3f}",
        f"{1.96 * post.predict(ag.Points([5.0])).std[0]:.2f}",
    ]


if __name__ == "__main__":
    arguments(__doc__).parse_args()
    average = float(np.mean(DISTANCE / WINDOWS.mass))
    header = [
        "",
        "variance",
        "ℓ (exp(-d²/ℓ²))",
        "noise",
        "-log likelihood",
        "speed at 5 s, observed",
        "± of the function",
    ]
    rows = [
        ["paper", "12.9", "7.1", "0.6", "", "4.87 ± 1.70", ""],
        [f"constant mean {average:.3f}", *figures(fit(ag.Constant(ag.fixed(average))))],
        ["zero mean", *figures(fit(None))],
    ]
    page(
        "robot",
        "Robot speed from distances",
        f"""
Four noisy distances over time windows; what was the speed at 5 s? The printed figures need the average speed
({average:.3f} m/s) subtracted, and their interval is for a noisy observation. Lengthscales are shown in the paper's
convention, √2 times ours.

{table(header, rows)}
""",
    )
