"""Where a number was measured: points, boxes, bags, polygons, polytopes, and their products."""

from aggregauss.supports.bags import Bags
from aggregauss.supports.boxes import Boxes, Intervals
from aggregauss.supports.points import Points
from aggregauss.supports.polygons import Polygons
from aggregauss.supports.polytopes import Polytopes
from aggregauss.supports.pool import pool
from aggregauss.supports.product import Product
from aggregauss.supports.summarise import Summaries, summarise
from aggregauss.supports.support import Support, concatenate

__all__ = [
    "Bags",
    "Boxes",
    "Intervals",
    "Points",
    "Polygons",
    "Polytopes",
    "Product",
    "Summaries",
    "Support",
    "concatenate",
    "pool",
    "summarise",
]
