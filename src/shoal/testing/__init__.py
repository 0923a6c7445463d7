"""The laws that every member of a family keeps, for authors of plug-ins to run on their own."""

from shoal.testing.masks import mask_laws, window_mask_laws

__all__ = ["mask_laws", "window_mask_laws"]
