#!/usr/bin/env python3
"""Answers the questions about time (`crates/testing/examples/temporal`) once more, in plain Python,
and compares with what the tests expect.

Usage: python tests/compare/questions.py     (needs duckdb, which only reads the files)

The expected answers (`crates/testing/tests/it/questions.txt`) are checked against the engine by the
tests; here they are checked against programs that share nothing with it. Ends with a line `N
passed, N failed` and exits with 1 when a line differs.
"""

import bisect
import collections
import datetime
import pathlib
import sys

import duckdb

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXPECTED = ROOT / "crates" / "testing" / "tests" / "it" / "questions.txt"
MINUTE = 60_000_000
HOUR = 60 * MINUTE


def rows(file, columns):
    """The file's rows as tuples, in its order."""
    return duckdb.sql(f"select {columns} from '{ROOT / 'examples' / 'data' / file}'").fetchall()


def flights(columns):
    return rows("flights.parquet", "epoch_us(sched_dep), " + columns)


def clock(micros):
    return (datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros)).strftime("%m-%d %H:%M")


def up(time, step):
    """The least multiple of a step that is not before."""
    return -(-time // step) * step


def delays_by_hour():
    hours = collections.defaultdict(list)
    for time, late in flights("dep_delay"):
        hours[up(time, HOUR)].append(late)
    known = {end: [late for late in all_of if late is not None] for end, all_of in hours.items()}
    mean = {end: sum(late) / len(late) for end, late in known.items() if late}
    late, end = max((mean[end], end) for end in mean if len(hours[end]) >= 30)
    yield f"{len(hours)} hours with departures"
    yield f"the latest: {clock(end - HOUR)} to {clock(end)}, {len(hours[end])} flights, {late:.1f} minutes"


def rush():
    quarter, day = 15 * MINUTE, 24 * HOUR
    for origin in ["EWR", "JFK", "LGA"]:
        times = sorted(time for time, of in flights("origin") if of == origin)
        most = collections.defaultdict(int)
        # A window that ends at a quarter holds what came in the hour up to it; where nothing enters
        # or leaves the answer goes on, and is not another one.
        for end in {up(time, quarter) + after for time in times for after in (0, HOUR)}:
            count = bisect.bisect_right(times, end) - bisect.bisect_right(times, end - HOUR)
            most[up(end, day)] = max(most[up(end, day)], count)
        best = max(most.values())
        yield f"{origin}: {best} within an hour, on the day that ended {clock(min(end for end in most if most[end] == best))}"


def airborne():
    changes = collections.Counter()
    for time, late, minutes in flights("dep_delay, air_time"):
        if minutes is not None and late is not None and late > -60 and minutes > 0:
            start = time + max(late, 0) * MINUTE
            changes[start, 1] += 1
            changes[start + minutes * MINUTE, -1] += 1
    times = sorted({time for time, _ in changes})
    in_force, pieces = 0, []
    for time, end in zip(times, times[1:]):
        in_force += changes[time, 1] - changes[time, -1]
        pieces.append((in_force, time, end))
    most, start, end = max(pieces)
    yield f"at most {most} at a time, from {clock(start)} to {clock(end)}"


def fog():
    observed = collections.defaultdict(list)
    for time, origin, miles in rows("weather.parquet", "epoch_us(time_hour), origin, visib"):
        observed[origin, time].append(miles is not None and miles < 2.0)
    met = collections.defaultdict(list)
    for time, origin, late in rows("flights.parquet", "epoch_us(time_hour), origin, dep_delay"):
        for is_bad in observed[origin, time]:
            met[is_bad].append(late)
    for is_bad in [False, True]:
        known = [late for late in met[is_bad] if late is not None]
        yield f"bad sight {str(is_bad).lower()}: {len(met[is_bad])} flights, {sum(known) / len(known):.1f} minutes late"


def quiet_nights():
    for origin in ["EWR", "JFK", "LGA"]:
        times = sorted(time for time, of in flights("origin") if of == origin)
        gaps = [(later - time, time) for time, later in zip(times, times[1:]) if later - time >= 2 * HOUR]
        gap, since = max(gaps)
        yield f"{origin}: {len(gaps) + 1} sessions, longest quiet {gap / HOUR:.1f} hours from {clock(since)}"


def turnarounds():
    of_aircraft = collections.defaultdict(list)
    for time, tail in flights("tailnum"):
        if tail is not None:
            of_aircraft[tail].append(time)
    away, still = [], 0
    for times in of_aircraft.values():
        times.sort()
        for time in times:
            later = bisect.bisect_right(times, time)
            if later < len(times):
                away.append((times[later] - time) // HOUR)
            else:
                still += 1
    away.sort()
    quarter, half, most = (away[len(away) * percent // 100] for percent in (25, 50, 75))
    yield f"{len(away)} departures were followed by another of the same aircraft, {still} were not"
    yield f"after {quarter} hours in a quarter of all cases, {half} in half, {most} in three quarters"


def worsening():
    of_aircraft = collections.defaultdict(list)
    for time, tail, late in flights("tailnum, dep_delay"):
        if tail is not None and late is not None:
            of_aircraft[tail].append((time, late))
    found = []
    for tail, departures in of_aircraft.items():
        departures.sort(key=lambda departure: departure[0])
        at_once = collections.Counter(time for time, _ in departures)
        for (a, first), (b, second), (c, third) in zip(departures, departures[1:], departures[2:]):
            is_worse = first > 15 and second > first + 30 and third > second + 30
            # (Two departures at one time are no sequence.)
            if is_worse and c < a + 24 * HOUR and all(at_once[time] == 1 for time in (a, b, c)):
                found.append((third, c, tail))
    late, time, tail = max(found)
    yield f"{len(found)} times"
    yield f"the worst: {tail} left {late} minutes late, found {clock(time)}"


def mean_by_carrier(expected):
    """Early answers are right if they are the answer over the first rows, about as many as they
    say; the last is over all."""
    all_rows = rows("flights.parquet", "carrier, dep_delay")
    punctual, known = collections.Counter(), collections.Counter()
    answers, carriers = [], set()
    for carrier, late in all_rows:
        carriers.add(carrier)
        if late is not None:
            known[carrier] += 1
            punctual[carrier] += late < 15
        answers.append(None)
        if len(answers) % 1024 == 0 or len(answers) == len(all_rows):
            value, best = max((punctual[of] / known[of], of) for of in known)
            answers[-1] = f"% of the file: {best} of {len(carriers)} carriers is the most punctual, {100 * value:.1f} %"
    for line in expected:
        share, rest = int(line.split()[1]), line.split(maxsplit=2)[2]
        around = range(len(all_rows) * max(share - 5, 0) // 100, len(all_rows) * min(share + 5, 100) // 100)
        last = share == 100
        is_right = rest == answers[-1] if last else any(rest == answers[at] for at in around)
        yield line if is_right else f"after {share} {answers[-1] if last else 'something else'}"


QUESTIONS = [delays_by_hour, rush, airborne, fog, quiet_nights, turnarounds, worsening]


def main():
    expected = collections.defaultdict(list)
    question = ""
    for line in EXPECTED.read_text().splitlines():
        if line.startswith("    "):
            expected[question].append(line.strip())
        else:
            question = line
    passed = failed = 0
    names = list(expected)
    answers = [list(ask()) for ask in QUESTIONS] + [list(mean_by_carrier(expected[names[-1]]))]
    for name, answer in zip(names, answers, strict=True):
        if answer == expected[name]:
            passed += 1
        else:
            failed += 1
            print(f"{name}\n    expected {expected[name]}\n    answer   {answer}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
