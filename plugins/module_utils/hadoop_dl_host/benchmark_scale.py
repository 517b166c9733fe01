# -*- coding: utf-8 -*-
"""How `deeplearning benchmark` and playbooks/benchmark.yml draw how much faster a GPU is. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

BAR = 2.0  # times faster for each #


def bar(factor):
    return "#" * int(round(factor / BAR))
