"""What happens to tasks while the way to the cluster, the cluster or the connector fails."""
