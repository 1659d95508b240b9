"""Slow, independent routes to the same numbers, in arbitrary precision."""

import mpmath as mp

VALUES = {
    "RBF": lambda t: mp.e ** (-t * t / 2),
    "Matern12": lambda t: mp.e ** (-t),
    "Matern32": lambda t: (1 + mp.sqrt(3) * t) * mp.e ** (-mp.sqrt(3) * t),
    "Matern52": lambda t: (1 + mp.sqrt(5) * t + 5 * t * t / 3) * mp.e ** (-mp.sqrt(5) * t),
    "Cosine": mp.cos,
}
# Second antiderivatives, even, as textbooks print them: in 300 digits their cancellation does no harm.
POTENTIALS = {
    "RBF": lambda x: mp.e ** (-x * x / 2) + x * mp.sqrt(mp.pi / 2) * mp.erf(x / mp.sqrt(2)),
    "Matern12": lambda x: mp.e ** (-abs(x)) + abs(x),
    "Matern32": lambda x: _poly_exp(x, mp.sqrt(3), 3, 1, 0, 2),
    "Matern52": lambda x: _poly_exp(x, mp.sqrt(5), 5, mp.mpf(7) / 3, mp.mpf(5) / 3, mp.mpf(8) / 3),
    "Cosine": lambda x: -mp.cos(x),
}


def _poly_exp(x, a, c0, c1, c2, slope):
    t = a * abs(x)
    return ((c0 + c1 * t + c2 * t * t / 5) * mp.e ** (-t) + slope * t) / a**2


def quadrature_mean(name, d, p, q):
    """Mean of ρ over two intervals: adaptive quadrature against the trapezoidal density of the difference."""
    rho = VALUES[name]
    with mp.workdps(30):
        d, p, q = mp.mpf(d), mp.mpf(p), mp.mpf(q)
        s, delta = (p + q) / 2, abs(p - q) / 2
        height = 1 / max(p, q)

        def density(u):
            return height * min(mp.mpf(1), max((s - abs(u)) / (s - delta), 0)) if s > delta else height

        knots = {-s, -delta, delta, s, *(-d + k for k in (-30, -12, -5, -2, 0, 2, 5, 12, 30))}
        inside = sorted(k for k in knots if -s <= k <= s)
        return mp.quad(lambda u: density(u) * rho(abs(d + u)), inside)


def potential_mean(name, d, p, q, scale=1):
    """Mean of ρ over two intervals from four differences of the potential, in many digits."""
    F = POTENTIALS[name]
    d, p, q = (mp.mpf(x) / scale for x in (d, p, q))
    s, delta = (p + q) / 2, (p - q) / 2
    return (F(d + s) - F(d + delta) - F(d - delta) + F(d - s)) / (p * q)


def potential_mean_and_gradient(name, d, p, q):
    """The mean, and its derivative in log(scale) by central differences in many digits."""
    with mp.workdps(120):
        step = mp.mpf(10) ** -30
        value = potential_mean(name, d, p, q)
        up, down = (potential_mean(name, d, p, q, 1 + sign * step) for sign in (1, -1))
        return float(value), float((up - down) / (2 * step))
