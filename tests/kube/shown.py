"""A watch that shows all that it keeps; readers of the package's ask for one object, or by the index."""

from __future__ import annotations

from flytekitplugins.kuberay.kube import Watch
from flytekitplugins.kuberay.kube.watch import Key, T


class ShownWatch(Watch[T]):
    """A watch whose whole view can be compared."""

    def items(self) -> dict[Key, T]:
        """All that is kept, as a copy."""
        return dict(self._objects)
