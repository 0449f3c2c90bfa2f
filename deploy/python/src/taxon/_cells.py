"""Cells of tables as texts and numbers, as the binary reads them: docs/formats.md says how, under "Values"."""

from __future__ import annotations

import calendar
import datetime
import math
import re
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Callable

import numpy as np

__all__ = ["is_list", "is_missing", "label_name", "number_of", "text_of", "values"]

_DAY = 24 * 60 * 60
_YEAR_ZERO, _YEAR_TEN_THOUSAND = -62167219200, 253402300800  # their first seconds
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # of a second


def is_list(v: Any) -> bool:
    """Whether a cell is a list. Tuples with named parts are structs."""
    if isinstance(v, (str, int, float)):  # most are
        return False
    if isinstance(v, np.ndarray):
        return v.ndim > 0
    return isinstance(v, list) or type(v) is tuple or hasattr(v, "to_list") or hasattr(v, "to_pylist")


def is_missing(v: Any) -> bool:
    """Whether a cell has no value: None, NaN, NaT, pandas' NA or an empty text."""
    if isinstance(v, str):
        return v == ""
    return v is None or type(v).__name__ in ("NAType", "NaTType") or not is_list(v) and bool(v != v)


@dataclass(frozen=True)
class _Moment:
    """A date, a time of day or a timestamp: seconds since midnight or 1970."""

    what: str  # "dates", "times of day" or "timestamps"
    seconds: int
    nanos: int = 0
    zone: str = ""  # "Z" if it is in UTC

    def text(self) -> str:
        if not _YEAR_ZERO <= self.seconds < _YEAR_TEN_THOUSAND:
            raise ValueError("holds a date outside the years 0 to 9999")
        day, _, time = str(np.datetime64(self.seconds, "s")).partition("T")
        if self.what == "dates":
            return day
        if self.nanos:
            digits = f"{self.nanos:09d}"
            while digits.endswith("000"):
                digits = digits[:-3]
            time += "." + digits
        return time if self.what == "times of day" else f"{day}T{time}{self.zone}"


def _moment(what: str, units: int, second: int, zone: str = "") -> _Moment:
    """The moment of so many units, of which ``second`` are a second."""
    seconds, part = divmod(int(units), second)
    return _Moment(what, seconds, part * (10**9 // second), zone)


def _numpy_moment(v: np.datetime64, zone: str = "") -> _Moment:
    unit, count = np.datetime_data(v.dtype)
    if unit in ("Y", "M", "W", "D"):
        return _Moment("dates", int(v.astype("datetime64[D]").astype(np.int64)) * _DAY)
    if unit not in _UNITS or count != 1:
        unit = "s" if unit in ("h", "m", "s") else "ns"
    return _moment("timestamps", int(v.astype(f"datetime64[{unit}]").astype(np.int64)), _UNITS[unit], zone)


def _time(v: datetime.date | datetime.time) -> _Moment:
    if isinstance(v, datetime.datetime):
        nanos = v.microsecond * 1000 + getattr(v, "nanosecond", 0)  # pandas has those
        return _Moment("timestamps", calendar.timegm(v.utctimetuple()), nanos, "Z" if v.tzinfo else "")
    if isinstance(v, datetime.date):
        return _Moment("dates", (v - datetime.date(1970, 1, 1)).days * _DAY)
    return _Moment("times of day", v.hour * 3600 + v.minute * 60 + v.second, v.microsecond * 1000)


def _plain(v: Any) -> Any:
    """A cell that is no list as None, str, bool, int, float, np.float32, Decimal, UUID or _Moment."""
    if isinstance(v, np.ndarray) and v.ndim == 0:
        v = v[()]
    if is_missing(v):
        return None
    if type(v) in (str, bool, int, float):  # most are
        return v
    if isinstance(v, (bytes, bytearray, memoryview)):
        try:
            return bytes(v).decode() or None
        except UnicodeDecodeError:
            raise ValueError(f"holds {bytes(v)!r}, which is not UTF-8 text") from None
    if isinstance(v, (np.float16, np.float32)):
        return np.float32(v)
    if isinstance(v, np.datetime64):
        return _numpy_moment(v)
    if isinstance(v, np.floating):
        return float(v)
    if isinstance(v, (np.bool_, np.integer)) and not isinstance(v, np.timedelta64):
        return v.item()
    if isinstance(v, (datetime.date, datetime.time)):
        return _time(v)
    if isinstance(v, (str, bool, int, float, Decimal, uuid.UUID, _Moment)):
        return v
    what = f"values of the type {type(v).__name__}"
    if is_list(v):
        what = "lists of lists"
    elif isinstance(v, (datetime.timedelta, np.timedelta64)):
        what = "durations"
    elif isinstance(v, dict):
        what = "structs"
    raise ValueError(f"holds {what}: want a text, a number or a list of them")


def text_of(v: Any) -> str:
    """The text of a cell, of lists their entries' joined by blanks; empty where it is missing."""
    if type(v) is str:  # most are
        return v
    if is_list(v):
        return " ".join(text for text in map(_entry_text, values(v)) if text)
    return _entry_text(v)


def _entry_text(v: Any) -> str:
    v = _plain(v)
    if v is None:
        return ""
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (float, np.float32)):
        return _float_text(v)
    if isinstance(v, Decimal):
        return format(v if v else abs(v), "f")  # no zero has a sign
    return v.text() if isinstance(v, _Moment) else str(v)


def _float_text(v: float | np.float32) -> str:
    """The shortest digits that give the number back in its own precision, with a point."""
    size, small = abs(float(v)), 1e-5
    if isinstance(v, np.float32):
        small = float(np.float32(small))  # what is written as 0.00001
    if math.isinf(size):
        return "inf" if v > 0 else "-inf"
    if 0 < size < small or size >= 1e16:
        mantissa, _, exponent = np.format_float_scientific(v, trim="-").partition("e")
        return f"{mantissa}e{exponent[0]}{exponent[1:].lstrip('0')}"
    return np.format_float_positional(v, trim="0")


def label_name(v: Any) -> str:
    """A class as text. Whole numbers that a table made floats are whole again, and objects of classes that no table
    has are what ``str`` says."""
    if isinstance(v, (float, np.floating)) and float(v).is_integer():
        return str(int(v))
    try:
        return _entry_text(v)
    except ValueError:
        return str(v)


_ABSENT = ("", "na", "nan", "null", "none")
_WORDS = {"true": 1.0, "false": 0.0}
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?")


def number_of(v: Any) -> float:
    """A cell that is no list as a number; NaN where it is missing."""
    if type(v) is float:  # most are
        return v
    v = _plain(v)
    if v is None:
        return math.nan
    if isinstance(v, str):
        word = v.strip().lower()
        if word in _ABSENT:
            return math.nan
        if word in _WORDS:
            return _WORDS[word]
        x = float(word) if _NUMBER.fullmatch(word) else math.inf
        if math.isinf(x):
            raise ValueError(f"holds {v!r}, which is not a finite number (an empty cell is one that is missing)")
        return x
    if isinstance(v, (_Moment, uuid.UUID)):
        what = v.what if isinstance(v, _Moment) else "UUIDs"
        raise ValueError(f"holds {what}: want a number or a list of numbers")
    try:
        return float(v)
    except OverflowError:
        return math.inf if v > 0 else -math.inf


def values(column: Any) -> list[Any]:
    """The cells of a column, or the entries of a list, in the precision that its type has."""
    library = type(column).__module__.partition(".")[0]
    if library == "pandas":
        return _of_pandas(column)
    if library == "polars":
        return _of_polars(column)
    if library == "pyarrow":
        return _of_arrow(column)
    for name in ("to_pylist", "to_list"):
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)  # of arrays not tolist(), which makes float32 float64


def _each(cells: list[Any], convert: Callable[[Any], Any]) -> list[Any]:
    """Convert cells and the entries of lists that have a value."""
    return [_each(v, convert) if is_list(v) else None if is_missing(v) else convert(v) for v in cells]


def _of_pandas(column: Any) -> list[Any]:
    dtype = column.dtype
    if hasattr(dtype, "pyarrow_dtype"):
        return _of_arrow(column.array.__arrow_array__())
    if hasattr(dtype, "categories"):
        known = values(dtype.categories)
        codes = column.cat.codes if hasattr(column, "cat") else column.codes
        return [known[k] if k >= 0 else None for k in codes]
    dtype = getattr(dtype, "subtype", dtype) if type(dtype).__name__ == "SparseDtype" else dtype
    if getattr(dtype, "kind", "") == "M":
        unit = dtype.unit if hasattr(dtype, "unit") else np.datetime_data(dtype)[0]
        zone = "Z" if getattr(dtype, "tz", None) is not None else ""
        return _each(list(column.to_numpy(dtype=f"datetime64[{unit}]")), lambda v: _numpy_moment(v, zone))
    cells = column.to_list()
    if getattr(dtype, "kind", "") == "f" and dtype.itemsize <= 4:
        return _each(cells, np.float32)
    return list(cells)


def _of_polars(column: Any) -> list[Any]:
    leaf = column.dtype
    while hasattr(leaf, "inner"):
        leaf = leaf.inner
    kind = str(leaf).partition("(")[0]
    if kind in ("Float16", "Float32"):
        return _each(column.to_list(), np.float32)
    if kind == "Datetime":
        second, zone = _UNITS[leaf.time_unit], "Z" if leaf.time_zone else ""
        return _each(column.to_physical().to_list(), lambda v: _moment("timestamps", v, second, zone))
    if kind == "Time":
        return _each(column.to_physical().to_list(), lambda v: _moment("times of day", v, 10**9))
    return list(column.to_list())


def _of_arrow(column: Any) -> list[Any]:
    if hasattr(column.type, "index_type"):  # a dictionary
        column = column.cast(column.type.value_type)
    leaf = column.type
    while hasattr(leaf, "value_type"):
        leaf = leaf.value_type
    kind = str(leaf).partition("[")[0]
    if kind in ("float", "halffloat"):
        return _each(column.to_pylist(), np.float32)
    if leaf == column.type:  # no list; Python's own times have no nanoseconds
        if kind == "timestamp":
            second, zone = _UNITS[leaf.unit], "Z" if leaf.tz else ""
            return _each(column.cast("int64").to_pylist(), lambda v: _moment("timestamps", v, second, zone))
        if kind == "time64":
            second = _UNITS[leaf.unit]
            return _each(column.cast("int64").to_pylist(), lambda v: _moment("times of day", v, second))
    return list(column.to_pylist())
