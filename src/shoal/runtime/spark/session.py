"""Spark, if it is there: a session for the command line, and errors that say what is missing."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.core.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_spark() -> None:
    """An error that says what to install, if Spark or Java is missing."""
    if importlib.util.find_spec("pyspark") is None:
        raise UsageError("Spark is not installed", where="spark", hint="pip install 'shoal[spark]'")
    home = os.environ.get("JAVA_HOME")
    if not (home and Path(home, "bin", "java").exists()) and shutil.which("java") is None:
        raise UsageError(
            "Spark needs Java, and there is none",
            where="spark",
            hint="install Java 17 or newer, or set JAVA_HOME to where it is",
        )


def local_session() -> SparkSession:
    """A session for a command: the one that is running, or Spark on this machine, as SPARK_MASTER says."""
    require_spark()
    from pyspark.sql import SparkSession

    # workers must import the same packages as the driver
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("shoal").master(os.environ.get("SPARK_MASTER", "local[2]"))
    return (
        builder.config("spark.ui.enabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100000")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def checkpoints(session: SparkSession) -> None:
    """Where results wait until they are judged: what was judged must be what is handed out, also if a machine dies."""
    context = session.sparkContext
    if context.getCheckpointDir() is not None:
        return
    if not str(context.master).startswith("local"):
        raise UsageError(
            "there is no place where all machines can keep the release until it is judged",
            where="spark",
            hint="set one: spark.sparkContext.setCheckpointDir('hdfs://…')",
        )
    # what waits there says whose each row is, and Spark leaves it lying
    folder = tempfile.mkdtemp(prefix="shoal-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    context.setCheckpointDir(folder)
