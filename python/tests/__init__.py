"""Tests of the Python package, by question."""
