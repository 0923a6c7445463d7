"""`serve run --watch` on a real broker: the page shows the run as it goes, dead letters as counts, and its end."""

from __future__ import annotations

import json
import re
import urllib.request
from http.cookiejar import CookieJar

import msgspec
import pytest
from stage import WARD

pytestmark = pytest.mark.system


def test_a_service_is_watched_while_it_runs(stage):
    here = stage(WARD, partitions=1)
    here.start("--watch")
    log = here.folder / "worker0.log"
    here.until(lambda: b"http" in log.read_bytes())
    link = re.search(r"http\S+", log.read_text())[0]
    visit = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    visit.open(link, timeout=60).close()
    rows = [(msgspec.json.encode({"number": n, "name": f"Secret{n}", "diag": "E10"}), None) for n in range(500)]
    here.send([*rows, (b"no record of Secret", None)])
    with visit.open(link.partition("/enter")[0] + "/events", timeout=120) as told:
        for line in told:
            parts = json.loads(line[6:])["parts"] if line.startswith(b"data: ") else {}
            if "500" in parts.get("views", "") and "dead letters" in parts.get("errors", ""):
                break
        assert "1 records could not be read and are dead letters so far" in parts["errors"]
        assert "Lag" in parts["figures"]
        here.stop()
        rest = told.read()
    assert b'"ended":true' in rest
    assert "Secret" not in line.decode() + rest.decode()
    assert here.processes[0].returncode == 0
