"""The attached door: `attach(spark)`, and what becomes of scans, writes and statements of an attached session."""

__all__ = [
    "attachment",  # `attach(spark)`
]
