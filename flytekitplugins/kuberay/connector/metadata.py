"""What a connector remembers of a task it created: the resource metadata that propeller stores and sends back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields

from flytekit.extend.backend.base_connector import ResourceMeta

from ..errors import KubeRayError

VERSION = 1
_SHOWN = 80  # bytes of what is not ours


@dataclass
class JobMetadata(ResourceMeta):
    """A task's RayJob and where its results go; a few hundred bytes, for it is stored in the FlyteWorkflow.

    Tasks outlive releases: a newer connector reads what any older one wrote, so a field is never renamed or reused.
    """

    namespace: str
    name: str
    uid: str
    output_prefix: str
    has_outputs: bool
    notes: str = ""  # what has no effect here, and what the API server warned of at the create, cut
    v: int = VERSION
    start_deadline: int | None = None  # seconds
    run_deadline: int | None = None  # seconds

    def encode(self) -> bytes:
        """The metadata as JSON."""
        present = {key: value for key, value in asdict(self).items() if value is not None}
        return json.dumps(present, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> JobMetadata:
        """The metadata of a release of this package; keys that this one does not know are left aside.

        Raises:
            KubeRayError: It is of nobody we know.
        """
        try:
            found = json.loads(data)
            known = {field.name for field in fields(cls)}
            metadata = cls(**{key: value for key, value in found.items() if key in known})
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise _not_ours(data) from error
        if not all(isinstance(getattr(metadata, key), str) for key in ("namespace", "name", "uid", "output_prefix")):
            raise _not_ours(data)
        return metadata


def _not_ours(data: bytes) -> KubeRayError:
    return KubeRayError(
        f"the resource metadata was not made by flytekitplugins-kuberay, got {data[:_SHOWN]!r}; another connector has"
        " probably created the task: let that one serve it to its end, or abort the execution and start it anew"
    )
