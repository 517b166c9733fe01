# -*- coding: utf-8 -*-
"""How `deeplearning benchmark` and playbooks/benchmark.yml draw how much faster a GPU is. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

BAR = 2.0  # times faster for each #
# PRIMEFLEX for Hadoop (Fujitsu), page 9
PAPER = "the white paper that these networks come from saw 17x to 61x: one Tesla P100 against two Xeon Silver 4110, TensorFlow 1.4.1"


def bar(factor):
    return "#" * int(round(factor / BAR))
