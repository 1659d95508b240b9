"""Pictures; needs the extra `plots`."""

from aggregauss.plots.binned import plot_density

__all__ = ["plot_density"]
