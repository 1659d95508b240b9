"""Two touching 4-dimensional balls (Smith, Alvarez and Lawrence 2019, end of section 5.6): points or boxes?

The covariance of the totals over balls of radii 1 and 2 whose centres are 3 apart is a one-dimensional integral
over frequencies, because the Fourier transforms of a ball and of the kernel depend on the frequency's length
alone. Each ball enters the library as a 600-cell of the ball's volume: 600 simplices around the centre, turned at
random each time.
"""

import itertools

import numpy as np
from common import arguments, page, picture, resumable, table
from scipy.integrate import quad
from scipy.spatial import ConvexHull
from scipy.special import jv
from scipy.stats import qmc

import aggregauss as ag

LENGTHSCALE, VARIANCE = 2.0, 3.0
RADII, APART = (1.0, 2.0), 3.0
VOLUME = np.pi**2 / 2  # of the unit ball
KERNEL = ag.RBF(LENGTHSCALE, VARIANCE)
ATOMS = (1, 5, 10, 20, 40, 80)
MANY = (320, 1280, 5120)
REPETITIONS = {"boxes": 8, "centroids": 8, "uniform": 200, "sobol": 200}
PAPER = {"boxes": "25.1", "uniform": "50.0"}


def frequency_integral() -> float:
    """∫ k̂(w) Â(w) B̂(w) e^{iw·c} dw in polar coordinates; a ball of radius r has Â = (2πr/w)² J₂(rw)."""

    def integrand(w: float) -> float:
        spectrum = VARIANCE * (LENGTHSCALE**2 / (2 * np.pi)) ** 2 * np.exp(-((LENGTHSCALE * w) ** 2) / 2)
        balls = np.prod([(2 * np.pi * r / w) ** 2 * jv(2, r * w) for r in RADII])
        shift = 2 * jv(1, APART * w) / (APART * w)  # mean of e^{iw·c} over directions
        return spectrum * balls * shift * 2 * np.pi**2 * w**3

    return quad(integrand, 0, 20, epsabs=1e-12, epsrel=1e-12, limit=500)[0]


def monte_carlo(pairs: int = 4_000_000) -> tuple[float, float]:
    """The same from random pairs of points of the balls, with its standard error."""
    rng = np.random.default_rng(0)

    def inside(r: float) -> np.ndarray:
        z = rng.standard_normal((pairs, 4))
        return r * z / np.linalg.norm(z, axis=1)[:, None] * rng.random((pairs, 1)) ** 0.25

    gap = inside(RADII[0]) - inside(RADII[1]) - [APART, 0, 0, 0]
    values = VARIANCE * np.exp(-0.5 * (gap**2).sum(axis=1) / LENGTHSCALE**2) * VOLUME**2 * np.prod(RADII) ** 4
    return values.mean(), values.std() / np.sqrt(pairs)


def unit_ball() -> np.ndarray:
    """A 600-cell of volume π²/2 as simplices that share the centre, shape (600, 5, 4)."""
    golden = (1 + np.sqrt(5)) / 2
    signs = np.array(list(itertools.product([-1, 1], repeat=4)))
    even = [p for p in itertools.permutations(range(4)) if np.linalg.det(np.eye(4)[list(p)]) > 0]
    corners = np.concatenate(
        [
            signs / 2,
            np.eye(4),
            -np.eye(4),
            *((signs * [golden / 2, 0.5, 0.5 / golden, 0])[:, p] for p in even),
        ]
    )
    corners = np.unique(corners.round(12), axis=0)
    hull = ConvexHull(corners)
    facets = corners[hull.simplices] * (VOLUME / hull.volume) ** 0.25
    return np.concatenate([np.zeros((len(facets), 1, 4)), facets], axis=1)


def polytope_integral(cell: np.ndarray) -> float:
    """The covariance of the two polytopes themselves, from 2^21 low-discrepancy pairs of points."""
    total = 0.0
    for u in np.split(qmc.Sobol(10, rng=0).random(2**21), 16):
        rows = (u[:, [0, 5]] * len(cell)).astype(int)  # all 600 simplices have the same volume
        x, y = (ag.supports.simplices.map_unit_cube(cell[rows[:, j]], u[:, 5 * j + 1 : 5 * j + 5]) for j in (0, 1))
        gap = RADII[0] * x - RADII[1] * y - [APART, 0, 0, 0]
        total += np.exp(-0.5 * (gap**2).sum(axis=1) / LENGTHSCALE**2).sum()
    return total / 2**21 * VARIANCE * VOLUME**2 * np.prod(RADII) ** 4


def estimate(method: str, atoms: int, repetition: int) -> dict:
    turns = [np.linalg.qr(np.random.default_rng([repetition, j]).standard_normal((4, 4)))[0] for j in (0, 1)]
    balls = [r * unit_ball() @ turn for r, turn in zip(RADII, turns)]
    balls[1] = balls[1] + [APART, 0, 0, 0]
    support = ag.Polytopes(balls, method=method, atoms=atoms, seed=repetition)
    return {"covariance": float(ag.cov(KERNEL, support[0], support[1])[0, 0])}


def draw(errors: dict[tuple[str, int], np.ndarray]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    for method, marker in zip(REPETITIONS, "s^ox"):
        counts = [n for m, n in errors if m == method]
        axes.loglog(counts, [np.abs(errors[method, n]).mean() for n in counts], marker=marker, label=method)
    axes.plot([10, 10], [50.0, 25.1], "k*", label="printed: points 50.0, boxes 25.1")
    axes.set(xlabel="atoms in each ball", ylabel="mean absolute error of the covariance")
    axes.legend(frameon=False, fontsize=8)
    picture(figure, "hyperspheres")


if __name__ == "__main__":
    options = arguments(__doc__).parse_args()
    keys = [
        (method, atoms, repetition)
        for method, repetitions in REPETITIONS.items()
        for atoms in ATOMS + (MANY if method in ("uniform", "sobol") else ())
        for repetition in range(repetitions)
    ]
    rows = resumable("hyperspheres", keys, ["method", "atoms", "repetition", "covariance"], estimate, options.fresh)
    exact, (sampled, error), polytopes = frequency_integral(), monte_carlo(), polytope_integral(unit_ball())
    errors: dict[tuple[str, int], np.ndarray] = {}
    for method, atoms in dict.fromkeys(key[:2] for key in keys):
        found = [float(r["covariance"]) for r in rows if (r["method"], r["atoms"]) == (method, str(atoms))]
        errors[method, atoms] = np.array(found) - exact
    draw(errors)

    def cell(method: str, atoms: int) -> str:
        e = errors.get((method, atoms))
        return "" if e is None else f"{np.abs(e).mean():.2f} ({e.mean():+.2f})"

    lines = [[n, *(cell(m, n) for m in REPETITIONS)] for n in ATOMS + MANY]
    lines.insert(3, ["10, printed", *(PAPER.get(m, "") for m in REPETITIONS)])
    page(
        "hyperspheres",
        "Covariance of two touching 4-dimensional balls",
        f"""
Totals over balls of radii 1 and 2 with centres 3 apart, under an RBF kernel of variance 3 and lengthscale 2 in
exp(-d²/(2ℓ²)); the printed value, 314, belongs to these. Reference: **{exact:.4f}**, a one-dimensional integral
over frequencies; {sampled:.2f} ± {error:.2f} (standard error) from 4 million random pairs of points.

A union of simplices is not a ball: each enters as a 600-cell of the ball's volume. The covariance of the two
600-cells is {polytopes:.2f}, so {abs(polytopes - exact):.2f} of every error below is the shape's and not the atoms'.

Mean absolute error against the reference, and the mean error with its sign in brackets, over
{REPETITIONS["uniform"]} placements of random points, and over {REPETITIONS["boxes"]} orientations of the 600-cells for
boxes and centroids.

{table(["atoms in each ball", "boxes", "centroids", "uniform points", "Sobol points"], lines)}

![Error against the number of atoms](pictures/hyperspheres.png)

A box carries the volume, the mean and the variances of the piece it stands for, and the kernel is smooth over a
ball. So one box for each ball is off by {np.abs(errors["boxes", 1]).mean():.2f}, and {MANY[-1]:,} random points are off
by {np.abs(errors["uniform", MANY[-1]]).mean():.2f}. Random points have little bias but a large spread. Centroids have
little spread but a bias, because points without width lie closer together than the pieces do.
""",
    )
