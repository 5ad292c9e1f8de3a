"""`python -m kernbench`: the command line."""

import sys

from kernbench_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
