#!/bin/sh
cat "$0.runfiles/__main__/text.txt"
