"""What a Ray task looks like on the wire: `RayJobConfig` <-> `RayTask` <-> the task template's `custom` and `config`.

`from_config` makes a RayTask of what the user wrote, `to_custom` and `to_config_entry` write it into a template,
`from_template` reads it back, from tasks of this package and of flytekitplugins-ray 1.13 to 1.16; `read_template` as
much as can be read.
"""

from .raytask import (
    CONFIG_KEY,
    CONFIG_PATH,
    EXTRAS_VERSION,
    AutoscalerOptions,
    Extras,
    FlyteTask,
    HeadGroup,
    K8sPod,
    Manifest,
    RayTask,
    WorkerGroup,
)
from .reading import from_template, read_template
from .runtime_env import parse_runtime_env
from .writing import from_config, to_config_entry, to_custom

__all__ = [
    "CONFIG_KEY",
    "CONFIG_PATH",
    "EXTRAS_VERSION",
    "AutoscalerOptions",
    "Extras",
    "FlyteTask",
    "HeadGroup",
    "K8sPod",
    "Manifest",
    "RayTask",
    "WorkerGroup",
    "from_config",
    "from_template",
    "parse_runtime_env",
    "read_template",
    "to_config_entry",
    "to_custom",
]
