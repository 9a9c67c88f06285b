"""Ray on Flyte through KubeRay."""
