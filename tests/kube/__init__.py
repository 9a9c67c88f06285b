"""Tests of `kube`: against a scripted HTTP server for faults, against a real kube-apiserver for the rest."""
