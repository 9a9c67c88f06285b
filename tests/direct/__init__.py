"""Tasks that run straight on a cluster, here a real API server where the tests stand in for KubeRay and its pods."""
