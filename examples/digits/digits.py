# -*- coding: utf-8 -*-
"""The handwritten digits: reading, the split into training and held-out rows, and the shape of the result.

Python 2.7 and 3, standard library only, so that driver, executors and tests share it.
"""

from __future__ import absolute_import, division, print_function

import gzip
import json
import os

PIXELS = 64
CLASSES = 10
LARGEST = 16.0  # a pixel counts the ink in a block of 4 x 4
HELD_OUT_EVERY = 5  # the rows 0, 5, 10, … are never trained on
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "digits.csv.gz")


def lines(path=SOURCE):
    """The rows of the data set as text, in their published order."""
    with gzip.open(path, "rb") as handle:
        return [line for line in handle.read().decode("ascii").splitlines() if line]


def split(rows):
    """The training rows and the held-out rows: every fifth row is held out, on every machine and in every run."""
    held_out = rows[::HELD_OUT_EVERY]
    return [row for number, row in enumerate(rows) if number % HELD_OUT_EVERY], held_out


def parse(line):
    """One row as (pixels between 0 and 1, digit)."""
    if isinstance(line, bytes):
        line = line.decode("ascii")
    fields = [int(field) for field in line.split(",")]
    if len(fields) != PIXELS + 1 or not 0 <= fields[-1] < CLASSES:
        raise ValueError("a row of %d pixels and a digit is required, but this is none: %r" % (PIXELS, line))
    return [value / LARGEST for value in fields[:PIXELS]], fields[-1]


def arrays(rows):
    """Rows as (pixels, digits) for TensorFlow."""
    import numpy as np

    pairs = [parse(row) for row in rows]
    return np.array([pair[0] for pair in pairs], dtype="float32"), np.array([pair[1] for pair in pairs], dtype="int64")


def shards(rows, count):
    """The rows dealt out over count files, as even as they go."""
    return [rows[number::count] for number in range(count)]


def blocks(rows, size, epochs):
    """The rows of an iterator in lists of so many rows, so many times, and an empty one; the last list of an epoch may be shorter."""
    rows = list(rows)
    for _ in range(epochs):
        for start in range(0, len(rows), size):
            yield rows[start : start + size]
    yield []


def steps(rows, epochs, batch, share=1.0):
    """How many steps of batch rows there are in this share of so many epochs."""
    return max(1, int(rows * epochs * share) // batch)


def result(accuracy, held_out, seconds, executors, hosts, **more):
    """What a job reports, as one JSON text."""
    report = {
        "accuracy": round(float(accuracy), 4),
        "held_out": int(held_out),
        "seconds": round(float(seconds), 1),
        "executors": int(executors),
        "hosts": sorted(hosts),
    }
    report.update(more)
    return json.dumps(report, sort_keys=True)
