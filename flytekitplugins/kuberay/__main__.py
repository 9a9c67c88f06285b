"""`python -m flytekitplugins.kuberay`: the same program as `flyte-kuberay`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
