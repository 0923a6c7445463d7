"""A role's view, compiled: the one gate that every value passes."""
