"""Experiments of papers, run again: CA-Fed's on synthetic data, FedAR's on stale updates."""
