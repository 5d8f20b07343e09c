"""Theorems that everybody cites, beside the five papers: a file per paper."""
