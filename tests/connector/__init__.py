"""The connector over real gRPC, on a real API server."""
