"""What `import flytekit` costs with this package installed: it loads every plugin, for every user."""

import subprocess
import sys

PRINT_MODULES = """
import importlib.metadata, sys
real = importlib.metadata.entry_points
if sys.argv[1] == "without":
    def others(**wanted):
        found = real(**wanted)
        if wanted != {"group": "flytekit.plugins"}:
            return found
        return type(found)(each for each in found if each.name != "kuberay")
    importlib.metadata.entry_points = others
import flytekit
print(*sorted(sys.modules), sep="\\n")
"""


def modules(which: str) -> set[str]:
    """The modules that `import flytekit` loads in a new Python, with this package's entry point or without."""
    run = subprocess.run([sys.executable, "-c", PRINT_MODULES, which], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_import_flytekit_loads_nothing_heavy_for_this_package() -> None:
    """With the entry point, `import flytekit` loads this package, and no module of kubernetes, ray or grpc more."""
    more = modules("with") - modules("without")
    assert "flytekitplugins.kuberay.task" in more
    assert {name for name in more if name.split(".")[0] in ("kubernetes", "ray", "grpc")} == set()
