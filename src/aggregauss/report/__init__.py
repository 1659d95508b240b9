"""The report: one self-contained page with the maps, the fit, the effects and the record of a run."""

from aggregauss.report.data import Effect, Layer, ReportData
from aggregauss.report.page import write_page

__all__ = ["Effect", "Layer", "ReportData", "write_page"]
