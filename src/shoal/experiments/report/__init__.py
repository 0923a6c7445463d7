"""Everything the five papers publish, beside ours: see :mod:`shoal.experiments.report.whole`."""
