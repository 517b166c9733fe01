# -*- coding: utf-8 -*-
"""Code for hosts: Python 2.7 and 3, and outside modules the standard library only."""
