# -*- coding: utf-8 -*-
"""Processes that go on when the module that started them has ended, and the connection or the controller is lost. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import os


def detach():
    """A session of its own, and none of the caller's files: who waits for the end of these does not wait for it."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)


def start(work):
    """Run work(sending) in a process that nobody waits for; the first bytes that it sends, empty if it ended without."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiving)
        detach()
        if os.fork():
            os._exit(0)
        try:
            work(sending)
        finally:
            os._exit(0)
    os.close(sending)
    os.waitpid(child, 0)
    answer = os.read(receiving, 16)
    os.close(receiving)
    return answer
