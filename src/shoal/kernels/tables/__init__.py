"""Kernels of the table methods."""
