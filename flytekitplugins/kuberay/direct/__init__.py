"""Runs a Ray task straight on a cluster, from the user's process, over the connector's own code."""
