"""Between a Flyte task and a KubeRay RayJob, both ways: pure functions over plain camelCase data."""
