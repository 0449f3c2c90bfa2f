"""Errors and warnings of the package."""


class TaxonError(RuntimeError):
    """The taxon binary failed while it ran; its one line is the message."""
