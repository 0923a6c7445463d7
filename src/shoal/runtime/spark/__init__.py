"""Tables on Spark: the same job, region by region on its executors. Needs the extra ``spark`` and Java 17."""
