"""The laws that every member of a family keeps, for authors of plug-ins to run on their own.

One function per family, ``check_<family>(spec)``: it runs the laws on small generated data and raises
``AssertionError`` with the law that was broken. :class:`ListSink` and :class:`HandClock` stand for the two ends of a
stream.
"""

from shoal.testing.hierarchies import check_hierarchy
from shoal.testing.masks import check_mask, mask_laws, window_mask_laws
from shoal.testing.promises import check_promise
from shoal.testing.series import check_series_method
from shoal.testing.stand_ins import HandClock, ListSink
from shoal.testing.streams import check_stream_method
from shoal.testing.tables import check_table_method

__all__ = [
    "HandClock",
    "ListSink",
    "check_hierarchy",
    "check_mask",
    "check_promise",
    "check_series_method",
    "check_stream_method",
    "check_table_method",
    "mask_laws",
    "window_mask_laws",
]
