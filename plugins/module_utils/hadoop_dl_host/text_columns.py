# -*- coding: utf-8 -*-
"""Rows for a terminal. Python 2.7 and 3, standard library only."""

from __future__ import absolute_import, division, print_function


def columns(rows):
    """Lines in which the cells of these rows stand below each other."""
    rows = [["%s" % cell for cell in cells] for cells in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in rows]
