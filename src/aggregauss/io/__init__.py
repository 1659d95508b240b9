"""Data that stay in files; Parquet needs the extra `scale`."""

from aggregauss.io.parquet import ParquetBags

__all__ = ["ParquetBags"]
