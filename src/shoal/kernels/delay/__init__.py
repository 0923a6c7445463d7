"""Kernels of stream methods that hold events back for a bounded time."""
