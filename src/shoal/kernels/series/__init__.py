"""Kernels of the series methods."""
