"""Golden cases: whole tasks and the whole RayJob of each."""
