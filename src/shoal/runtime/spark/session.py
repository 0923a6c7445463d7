"""Spark, if it is there: a session for the command line, and errors that say what is missing."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from shoal.core.errors import InputError, ShoalError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOGGED = Path(__file__).with_name("log4j2.properties").absolute()  # errors only


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
    # of pandas it uses what all versions have
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    from pyspark.sql import SparkSession

    # workers must import the same packages as the driver
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # from its first line: what Spark warns of while it starts is nothing that a person has to do
    quiet, said = f"-Dlog4j2.configurationFile={LOGGED.as_uri()}", os.environ.get("SPARK_SUBMIT_OPTS", "")
    if quiet not in said:
        os.environ["SPARK_SUBMIT_OPTS"] = f"{quiet} {said}".strip()
    master = os.environ.get("SPARK_MASTER", "local[2]")
    builder = SparkSession.builder.appName("shoal").master(master)
    try:
        return (
            builder.config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100000")
            .getOrCreate()
        )
    except Exception as error:
        home = os.environ.get("JAVA_HOME")
        raise InputError(
            f"Spark could not be started ({type(error).__name__})",
            where="spark",
            hint=f"it needs Java 17 or newer (JAVA_HOME is {home or 'not set'}) and a master that answers "
            f"(SPARK_MASTER is {master}); what it wrote itself says more",
        ) from error


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
    context.setCheckpointDir(_private_folder())


def kept(rows: DataFrame) -> DataFrame:
    """Rows that were worked out once and are read from files from here on, where :func:`checkpoints` says."""
    session = rows.sparkSession
    if any(field.dataType.typeName() == "void" for field in rows.schema.fields):
        return rows.checkpoint()  # a column without a type has no place in Parquet
    place = f"{session.sparkContext.getCheckpointDir()}/{uuid4().hex}"
    rows.write.parquet(place)
    return session.read.schema(rows.schema).parquet(place)


@contextmanager
def told_plainly() -> Iterator[None]:
    """What goes wrong inside in a few words: what Spark says of it quotes rows and both languages' stacks."""
    try:
        yield
    except ShoalError:
        raise
    except Exception as error:
        raise InputError(
            f"Spark could not finish ({type(error).__name__})", where="spark", hint="its own log says why"
        ) from error


@contextmanager
def checkpoints_in(session: SparkSession, folder: Path) -> Iterator[None]:
    """On one machine, results wait in a folder that goes afterwards, and the session goes back to its own."""
    context = session.sparkContext
    if not str(context.master).startswith("local"):
        yield
        return
    before = context.getCheckpointDir()
    context.setCheckpointDir(str(folder))
    try:
        yield
    finally:
        # Spark makes a folder of its own inside the one it is given
        context.setCheckpointDir(_private_folder() if before is None else before.rpartition("/")[0])


def _private_folder() -> str:
    """What waits there says whose each row is, and Spark leaves it lying: it goes when the program ends."""
    folder = tempfile.mkdtemp(prefix="shoal-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
