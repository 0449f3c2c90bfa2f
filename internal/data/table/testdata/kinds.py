"""Writes the files of TestKinds and TestDamage.

    kinds.py FOLDER

FOLDER/kinds gets a table with a column of each logical type, in each format. The four rows of a column are two
values, null, and a value again; TestKinds says what each is read as. FOLDER/damage gets small files, which TestDamage damages.
"""
import datetime as dt
import decimal
import pathlib
import sys
import uuid

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

out = pathlib.Path(sys.argv[1]) / "kinds"
out.mkdir(exist_ok=True)
D = decimal.Decimal
day, moment, clock = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 12, 30, 0, 500000), dt.time(12, 30, 0, 500000)
midnight, old = dt.datetime(2020, 1, 1), dt.datetime(1955, 11, 5, 6, 15)
pair = pa.struct([("a", pa.int32()), ("b", pa.string())])

columns = {}


def column(name, type, a, b, c):
    columns[name] = pa.array([a, b, None, c], type)


for bits in (8, 16, 32, 64):
    top = 1 << (bits - 1)
    column(f"int{bits}", getattr(pa, f"int{bits}")(), -top, 7, top - 1)
    column(f"uint{bits}", getattr(pa, f"uint{bits}")(), 2 * top - 1, 7, top)
column("bool", pa.bool_(), True, False, True)
column("half", pa.float16(), 0.5, 2, -1.25)
column("float", pa.float32(), 0.1, 2, float("nan"))
column("double", pa.float64(), 0.1, 1e-7, 2e20)
column("infinite", pa.float64(), float("inf"), float("-inf"), 3)
column("decimal", pa.decimal128(3, 2), D("1.10"), D("-0.05"), D("3.00"))
column("decimal64", pa.decimal128(18, 3), D("123456789012345.678"), D("-1.5"), D("0"))
column("decimal128", pa.decimal128(38, 10), D("1234567890123456789012345678.0123456789"), D("-0.0000000001"), D("7"))
column("decimal256", pa.decimal256(60, 5), D("1" + 40 * "0" + ".00001"), D("-2"), D("7"))
column("date32", pa.date32(), day, dt.date(1969, 12, 31), dt.date(1, 1, 1))
column("date64", pa.date64(), day, dt.date(1969, 12, 31), dt.date(1, 1, 1))
column("time_s", pa.time32("s"), dt.time(12, 30), dt.time(0, 0), dt.time(23, 59, 59))
column("time_ms", pa.time32("ms"), clock, dt.time(0, 0), dt.time(23, 59, 59))
column("time_us", pa.time64("us"), clock, dt.time(0, 0), dt.time(0, 0, 0, 1))
column("time_ns", pa.time64("ns"), clock, dt.time(0, 0), dt.time(0, 0, 0, 1))
column("timestamp_s", pa.timestamp("s"), midnight, old, moment.replace(microsecond=0))
for unit in ("ms", "us", "ns"):
    column(f"timestamp_{unit}", pa.timestamp(unit), midnight, old, moment)
column("instant", pa.timestamp("us", "UTC"), midnight, old, moment)
column("berlin", pa.timestamp("ms", "Europe/Berlin"), midnight, old, moment)
column("duration", pa.duration("us"), dt.timedelta(1), dt.timedelta(0, 1), dt.timedelta(0))
column("string", pa.string(), "cat", "7.5", "é > ü")
column("large_string", pa.large_string(), "cat", "7.5", "é > ü")
column("string_view", pa.string_view(), "cat", "7.5", "é > ü and more than is stored inline")
column("binary", pa.binary(), b"cat", b"7.5", "é > ü".encode())
column("large_binary", pa.large_binary(), b"cat", b"7.5", "é > ü".encode())
column("binary_view", pa.binary_view(), b"cat", b"7.5", "é > ü and more than is stored inline".encode())
column("fixed_binary", pa.binary(3), b"cat", b"7.5", b"dog")
column("not_text", pa.binary(), b"\xff\xfe", b"\xe9", b"\xc3")
columns["null"] = pa.nulls(4)
columns["dictionary"] = pa.array(["cat", "dog", None, "cat"]).dictionary_encode()
columns["dictionary_dates"] = pa.array([day, day, None, dt.date(1969, 12, 31)]).dictionary_encode()
columns["uuid"] = pa.array([uuid.UUID(int=1).bytes, uuid.UUID(int=2**127).bytes, None, uuid.UUID(int=3).bytes], pa.uuid())
columns["json"] = pa.array(['"cat"', "7.5", None, "{}"], pa.json_())
column("strings", pa.list_(pa.string()), ["cat", "dog"], [], ["cat", None, ""])
column("large_strings", pa.large_list(pa.large_string()), ["cat", "dog"], [], ["cat", None, ""])
column("binaries", pa.list_(pa.binary()), [b"cat", b"dog"], [], [b"cat", None, b""])
column("floats", pa.list_(pa.float32(), 2), [0.5, 2], [1, None], [float("nan"), 4])
column("uints", pa.list_(pa.uint32()), [3000000000, 2], [1, None], [4294967295, 4])
column("uint64s", pa.large_list(pa.uint64()), [2**63, 2], [1, None], [2**64 - 1, 4])
column("decimals", pa.list_(pa.decimal128(9, 2)), [D("1.10"), D("2.00")], [D("-0.05"), None], [D("1"), D("4")])
column("bools", pa.list_(pa.bool_()), [True, False], [True, None], [False, False])
column("dates", pa.list_(pa.date32()), [day, day], [], [None, day])
column("timestamps", pa.list_(pa.timestamp("us")), [midnight, moment], [], [None, old])
column("durations", pa.list_(pa.duration("us")), [dt.timedelta(1)], [dt.timedelta(2)], [dt.timedelta(3)])
column("lists", pa.list_(pa.list_(pa.int32())), [[1, 2], [3]], [[4]], [[5], [6, 7]])
column("struct", pair, {"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 3, "b": None})
column("struct_of_one", pa.struct([("a", pa.int32())]), {"a": 1}, {"a": 2}, {"a": None})
column("structs", pa.list_(pair), [{"a": 1, "b": "x"}], [{"a": 2, "b": "y"}], [{"a": 3, "b": "z"}])
column("map", pa.map_(pa.string(), pa.int32()), [("a", 1)], [("b", 2)], [("c", 3), ("d", 4)])
columns["row"] = pa.array(["r1", "r2", "r3", "r4"])
arrow_only = {
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4], pa.int32()), pa.array(["cat", "dog", None, "cat"])),
    "list_view": pa.array([["cat", "dog"], [], None, ["cat", None, ""]], pa.list_view(pa.string())),
    "decimal32": pa.array([D("1.10"), D("-0.05"), None, D("3.00")], pa.decimal32(3, 2)),
    "union": pa.UnionArray.from_sparse(pa.array([0, 1, 0, 1], pa.int8()), [pa.array([1, 2, 3, 4]), pa.array(["a", "b", "c", "d"])]),
    "months": pa.array([(1, 2, 3), (0, 1, 0), None, (2, 0, 0)], pa.month_day_nano_interval()),
}

table = pa.table(columns)
pq.write_table(table, out / "pyarrow.parquet")
# Without Arrow's schema beside Parquet's, decimals as integers, data pages of the newer kind, plain encodings.
plain = table.drop_columns(["duration", "durations"])
pq.write_table(plain, out / "plain.parquet", store_schema=False, store_decimal_as_integer=True, use_dictionary=False, data_page_version="2.0",
               version="2.6", compression="zstd", column_encoding={"int64": "DELTA_BINARY_PACKED", "double": "BYTE_STREAM_SPLIT", "string": "DELTA_BYTE_ARRAY"})
# Timestamps as Spark wrote them for long.
pq.write_table(table.select(["timestamp_ms", "timestamp_us", "timestamp_ns", "row"]), out / "int96.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
views = pa.table({**columns, **arrow_only})
pa.feather.write_feather(views, out / "pyarrow.arrow", compression="uncompressed", chunksize=3)
pa.feather.write_feather(views.drop_columns(["runs"]), out / "zstd.arrow", compression="zstd")

# polars knows fewer types. Some it can't read, some it would change into others.
known = table.drop_columns(["half", "decimal256", "date64", "uuid", "json", "map", "dictionary_dates"])
frame = pl.from_arrow(known)
frame.write_parquet(out / "polars.parquet")
frame.write_ipc(out / "polars.arrow")

# In text there are no types: durations are texts, and times are written in the form that formats with types are read as.
text = frame.drop(["duration", "durations", *[c for c, t in frame.schema.items() if "Binary" in str(t)]])


def form(zone):
    return "%Y-%m-%dT%H:%M:%S%.f" + zone


text = text.with_columns(
    *[pl.col(c).dt.to_string(form("Z" if t.time_zone else "")) if not t.time_zone else pl.col(c).dt.convert_time_zone("UTC").dt.to_string(form("Z"))
      for c, t in text.schema.items() if t.base_type() is pl.Datetime],
    *[pl.col(c).dt.to_string("%H:%M:%S%.f") for c, t in text.schema.items() if t == pl.Time],
    pl.col("timestamps").list.eval(pl.element().dt.to_string(form(""))))
text.drop("infinite").write_ndjson(out / "polars.jsonl")
flat = text.select([c for c, t in text.schema.items() if not t.is_nested()]).drop("float", "infinite")
flat.write_csv(out / "polars.csv")
flat.write_csv(out / "polars.tsv", separator="\t")
pa.csv.write_csv(table.select([c for c in columns if c.startswith(("int", "uint", "bool", "decimal", "date3", "string", "null", "row")) and c not in (
    "uint64s", "uints", "strings", "infinite", "instant", "decimals", "bools", "string_view", "decimal128", "decimal256")]), out / "pyarrow.csv")

# Arrays have no null: the other three rows are labels, or the one column of a matrix.
for name, type in {**{f"{s}int{b}": f"{s}int{b}" for s in ("", "u") for b in (8, 16, 32, 64)}, "bool": "bool", "half": "float16", "float": "float32", "double": "float64", "string": "U", "fixed_binary": "S3"}.items():
    values = np.array([v for v in columns[name].to_pylist() if v is not None], type)
    np.save(out / f"{name}.npy", values)
    if values.dtype.kind in "biuf" and name != "float":  # NaN is no entry of a matrix
        np.save(out / f"{name}.matrix.npy", values.reshape(-1, 1))

out = out.parent / "damage"
out.mkdir(exist_ok=True)
small = pa.table({"text": pa.array(["small furry purr", "bark loud", None, "tree leaf tall"] * 2).dictionary_encode(), "label": pa.array([["cat", "pet"], ["dog"], None, []] * 2),
                  "number": [0.5, 1, None, 2] * 2, "list": pa.array([[1, 2], [3, 4], [5, 6], [7, 8]] * 2, pa.list_(pa.float32(), 2))})
for codec, version in (("none", "1.0"), ("snappy", "1.0"), ("zstd", "2.0"), ("lz4", "2.0")):
    pq.write_table(small, out / f"{codec}.parquet", compression=codec, data_page_version=version, write_page_checksum=True, use_dictionary=["text"], row_group_size=5)
for codec in ("uncompressed", "lz4", "zstd"):
    pa.feather.write_feather(small, out / f"{codec}.arrow", compression=codec, chunksize=5)
pl.from_arrow(small).write_ipc(out / "polars.arrow", compression="zstd")
# As scipy.sparse.save_npz writes a matrix of compressed rows.
rows = {"format": np.array(b"csr"), "shape": np.array([4, 5]), "indptr": np.array([0, 2, 3, 3, 6], "i4"), "indices": np.array([0, 4, 1, 0, 2, 3], "i4"), "data": np.array([0.5, 1, 2, 3, 4, 5], "f4")}
np.savez(out / "plain.npz", **rows)
np.savez_compressed(out / "packed.npz", **rows)
