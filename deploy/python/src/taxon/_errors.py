"""Errors and warnings of the package."""


class TaxonError(RuntimeError):
    """The taxon binary failed while it ran; its one line is the message."""


def need(package: str, extra: str) -> None:
    """Say what to install if a package of an extra is missing."""
    from importlib import import_module

    try:
        import_module(package)
    except ImportError as e:
        raise ImportError(f"this needs {package}: pip install 'taxon[{extra}]' ({e})") from None
