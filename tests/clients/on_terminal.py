"""Runs a program on a terminal of its own; prints all that it wrote there, and ends as it did."""

import os
import pty
import sys

sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
