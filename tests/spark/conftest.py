"""Spark on this machine. Starting it takes a while: one session serves all tests of this room."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[2] / ".cache" / "spark"
WRITTEN = 60.0  # seconds after which such a file is whole, or whoever wrote it was killed and Java passes it by


def start(master: str, **settings: str):
    """A session; or a skip where there is no Spark, unless the system's parts are required."""
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ImportError:
        pyspark = None
    if pyspark is None or shutil.which("java") is None:
        if os.environ.get("SHOAL_REQUIRE_SYSTEM"):
            pytest.fail("Spark or Java is missing")
        pytest.skip("Spark or Java is missing")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)  # noqa: PTH120
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(master).appName("shoal tests")
    fixed = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.log.level": "ERROR",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
        # a few hundred rows: to write and compile Java for each query costs more than to run it as it is
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        **kept_classes(pyspark.__version__, master),
        **settings,
    }
    for name, value in fixed.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def kept_classes(version: str, master: str) -> dict[str, str]:
    """What Java has read and checked of the jars is kept at its end: the next time the room takes three quarters of the
    CPU time. A Java of another version passes it by."""
    java = Path(shutil.which("java") or "java").resolve()
    kept = CACHE / f"{hashlib.sha256(f'{java} {version}'.encode()).hexdigest()[:16]}.jsa"
    draft = kept.with_suffix(".new")
    if draft.exists() and time.time() - draft.stat().st_mtime > WRITTEN:
        draft.replace(kept)
    if kept.exists():
        return {"spark.driver.extraJavaOptions": f"-XX:SharedArchiveFile={kept}"}
    if master != "local[2]" or draft.exists():
        return {}
    CACHE.mkdir(parents=True, exist_ok=True)
    quiet = "-Xlog:cds=off -Xlog:cds+dynamic=off"
    return {"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={draft} {quiet}"}


@pytest.fixture(scope="package")
def spark(tmp_path_factory) -> Iterator[object]:
    session = start("local[2]")
    session.sparkContext.setCheckpointDir(str(tmp_path_factory.mktemp("checkpoints")))
    yield session
    session.stop()
