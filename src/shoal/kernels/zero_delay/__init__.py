"""Kernels of z-anonymity: every event is answered at once."""
