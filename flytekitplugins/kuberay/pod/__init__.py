"""From a Flyte task to one pod template, and what any pod of it must hold: pure functions over plain camelCase data."""
