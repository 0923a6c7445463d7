"""Who is let in, and what is refused with a clear word."""

from __future__ import annotations

import io
import os
import urllib.request
from email.message import Message
from http.cookiejar import CookieJar
from pathlib import Path

import polars as pl
import pytest
from starlette.testclient import TestClient

from shoal.datasets.hospital import hospital
from shoal.web.downloads import ENDINGS
from shoal.web.folder import PREFIX, private_folder, wipe_abandoned
from shoal.web.gate import Gate
from shoal.web.server import is_loopback, names_of
from shoal.web.studio import Studio
from tests.attacks.test_marks import Marks, clean, uncompressed
from tests.web.forms import BASE, opened, post

ROWS = hospital(60, seed=3).write_csv().encode()


def test_without_the_link_nobody_is_let_in(stranger: TestClient) -> None:
    for place in ("/", "/static/studio.js", "/p/x/data"):
        answer = stranger.get(place)
        assert answer.status_code == 403
        assert "link that shoal printed" in answer.text
    assert stranger.put("/upload", params={"name": "a.csv"}, content=ROWS).status_code == 403


def test_the_link_works_once_and_its_cookie_is_strict(gate: Gate, stranger: TestClient) -> None:
    link = gate.link()
    cookie = stranger.get(link).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert stranger.get(link).status_code == 200  # the same browser may come back
    assert stranger.get("/").status_code == 200
    with TestClient(gate, base_url=BASE, follow_redirects=False) as other:
        assert other.get(link).status_code == 403
        assert other.get("/").status_code == 403
    assert "None" in gate.link()


class Answer:
    """What a browser was answered: a cookie."""

    def __init__(self, cookie: str) -> None:
        self.headers = Message()
        self.headers["Set-Cookie"] = cookie

    def info(self) -> Message:
        return self.headers


def test_another_port_of_the_same_machine_gets_the_cookie_of_the_studio(gate: Gate, stranger: TestClient) -> None:
    """So do browsers (RFC 6265, 8.5): ports are no border for cookies, names of hosts are."""
    cookie = stranger.get(gate.link()).headers["set-cookie"]
    jar = CookieJar()
    jar.extract_cookies(Answer(cookie), urllib.request.Request(BASE + "/"))

    def sent_to(address: str) -> bool:
        asked = urllib.request.Request(address)
        jar.add_cookie_header(asked)
        return asked.get_header("Cookie") is not None

    assert sent_to("http://127.0.0.1:9999/")
    assert not sent_to("http://127.0.0.2:4000/")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1:4001"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://127.0.0.1:4000"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
)
def test_other_hosts_and_origins_are_refused(
    visitor: TestClient, studio: Studio, headers: dict[str, str], status: int
) -> None:
    assert visitor.get("/", headers=headers).status_code == status
    assert visitor.post("/example", data={"name": "patients"}, headers=headers).status_code == status
    assert not studio.projects


def test_a_change_must_say_where_it_comes_from(gate: Gate, studio: Studio) -> None:
    with TestClient(gate, base_url=BASE, follow_redirects=False) as plain:
        plain.get(gate.link())
        assert plain.get("/").status_code == 200
        assert plain.post("/example", data={"name": "patients"}).status_code == 403
    assert not studio.projects


def test_every_answer_forbids_the_browser_everything_else(visitor: TestClient) -> None:
    for place in ("/", "/static/studio.css", "/nowhere", "/enter"):
        headers = visitor.get(place).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "name", ["../../etc/passwd.csv", "..\\..\\x.csv", "/etc/shadow.csv", "a/../../b.csv", "%2e%2e%2fx.csv", "x\0y.csv"]
)
def test_a_name_leads_nowhere(visitor: TestClient, studio: Studio, tmp_path: Path, name: str) -> None:
    project = opened(visitor, studio, name, ROWS)
    assert Path(project.source).parent == studio.folder
    assert "/" not in project.name
    assert sorted(p.name for p in tmp_path.iterdir()) == ["private"]
    inside = f"/p/{project.id}/download"
    for place in ("/static/..%2f..%2fapp.py", "/static/%2e%2e/app.py", f"{inside}/..%2f..%2fpolicy.yaml"):
        assert visitor.get(place).status_code in (404, 405)


def test_an_upload_that_is_too_large_is_refused_before_and_while_it_comes(visitor: TestClient, studio: Studio) -> None:
    def pieces():
        for _ in range(40):
            yield b"a,b\n" * 10_000

    for answer in (
        visitor.put("/upload", params={"name": "big.csv"}, content=b"", headers={"content-length": str(2 << 30)}),
        visitor.put("/upload", params={"name": "big.csv"}, content=pieces()),
    ):
        assert answer.status_code == 413
        told = answer.json()
        assert told["message"] == "the file is larger than 1 MB"
        assert "shoal studio FILE" in told["hint"]
    assert not list(studio.folder.iterdir())


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.parquet", b"PAR1 this is no parquet", "cannot be read as parquet"),
        ("a.ndjson", b"{not json}\n", "cannot be read as ndjson"),
        ("a.csv", b"\xff\xfe\x00bad", "not UTF-8"),
        ("a.csv", b"age,age\n1,2\n", "age"),
        ("a.csv", b"age,zip\n", "no rows"),
        ("a.xlsx", b"PK\x03\x04broken", "workbook"),
    ],
)
def test_a_broken_file_is_told_by_its_own_name(
    visitor: TestClient, studio: Studio, name: str, content: bytes, words: str
) -> None:
    project = opened(visitor, studio, name, content)
    page = visitor.get(f"/p/{project.id}")
    assert page.status_code == 422
    assert words in page.text
    assert str(studio.folder) not in page.text
    assert not studio.projects, "a file that cannot be read is forgotten and wiped"
    assert not list(studio.folder.iterdir())


@pytest.mark.parametrize(("name", "content", "words"), [("a.exe", b"MZ", "format"), ("a.csv", b"", "empty")])
def test_what_is_no_table_is_refused_at_once(
    visitor: TestClient, studio: Studio, name: str, content: bytes, words: str
) -> None:
    answer = visitor.put("/upload", params={"name": name}, content=content)
    assert answer.status_code == 422
    assert words in answer.json()["message"]
    assert answer.json()["where"] == name
    assert not list(studio.folder.iterdir())


def test_two_tabs_cannot_overwrite_each_other(visitor: TestClient, studio: Studio) -> None:
    project = opened(visitor, studio, "a.csv", ROWS)
    first = project.version
    assert post(visitor, project, "promise", k="7", l="2") == 303
    answer = visitor.post(f"/p/{project.id}/promise", data={"version": first, "k": "3"})
    assert answer.status_code == 409
    assert "another tab" in answer.text
    assert project.chosen.settings.k == 7
    assert visitor.post(f"/p/{project.id}/roles", data={"version": first, "role-0": "plain"}).status_code == 409


def test_names_and_values_are_text_never_markup(visitor: TestClient, studio: Studio) -> None:
    evil = "<script>alert(1)</script>"
    frame = hospital(60, seed=3).rename({"sex": evil}).with_columns(diag=pl.lit(f"'\"><img src=x onerror=1>{evil}"))
    project = opened(visitor, studio, f"{evil}.csv", frame.write_csv().encode())
    at = list(project.chosen.columns).index(evil)
    assert post(visitor, project, "roles", **{f"role-{at}": "quasi"}) == 303
    assert post(visitor, project, "promise", k="3", l="") == 303
    assert post(visitor, project, "run", method="mondrian", seed="1") == 303
    project.tasks["run"].wait(60)
    assert project.release is not None, project.tasks["run"].progress()
    seen = 0
    for step in (
        "data",
        "roles",
        "promise",
        "choose",
        "release",
        "release?tab=rows",
        "release?tab=groups",
        f"column/{at}",
    ):
        page = visitor.get(f"/p/{project.id}/{step}").text
        assert "<script>alert" not in page
        assert "<img" not in page
        seen += "&lt;script&gt;" in page
    assert seen >= 6
    assert "<script>alert" not in visitor.get("/").text
    assert "<script>alert" not in visitor.get(f"/p/{project.id}/download/report.html").text


def test_a_page_that_does_not_exist_says_so(visitor: TestClient, studio: Studio) -> None:
    project = opened(visitor, studio, "a.csv", ROWS)
    assert visitor.get("/p/none/data").status_code == 422
    for place in (f"/p/{project.id}/nothing", f"/p/{project.id}/download/released.csv", f"/p/{project.id}/column/99"):
        assert visitor.get(place).status_code == 404
    assert visitor.post(f"/p/{project.id}/nothing", data={"version": 0}).status_code == 404
    assert visitor.get(f"/p/{project.id}/data?page=x").status_code == 200


def test_a_project_that_is_closed_leaves_nothing(visitor: TestClient, studio: Studio) -> None:
    project = opened(visitor, studio, "a.csv", ROWS)
    assert list(studio.folder.iterdir())
    assert visitor.post("/close", data={"id": project.id}).status_code == 303
    assert not list(studio.folder.iterdir())
    assert not studio.projects


def test_folders_of_killed_runs_are_wiped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone, mine = tmp_path / f"{PREFIX}999999999-x", tmp_path / f"{PREFIX}{os.getpid()}-x"
    for folder in (gone, mine):
        folder.mkdir()
        (folder / "secret.csv").write_text("a")
    with private_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert not gone.exists()
        assert mine.exists()
    assert not folder.exists()
    assert wipe_abandoned(tmp_path) == []


def test_only_this_machine_is_loopback() -> None:
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("example.org")
    assert names_of("::1", 80)[0] == "[::1]:80"
    assert names_of("10.0.0.1", 80) == ["10.0.0.1:80"]


def test_other_formats_are_read(visitor: TestClient, studio: Studio) -> None:
    frame = hospital(60, seed=3)
    parquet = io.BytesIO()
    frame.write_parquet(parquet)
    rows = {
        "a.parquet": parquet.getvalue(),
        "a.ndjson": frame.write_ndjson().encode(),
        "a.tsv": frame.write_csv(separator="\t").encode(),
        "b.csv": frame.write_csv(separator=";").encode(),
    }
    for name, content in rows.items():
        project = opened(visitor, studio, name, content)
        assert project.frame.height == 60, project.tasks["load"].progress()
        assert "age" in project.chosen.of("quasi")


def test_what_is_taken_away_holds_no_hidden_value(visitor: TestClient, studio: Studio) -> None:
    """The law of ``tests/attacks/test_marks.py``. Pages show the data to who brought them; what leaves must not."""
    marks = Marks()
    frame = hospital(60, seed=3).with_columns(
        name=pl.Series([marks.text() for _ in range(60)]),
        pid=pl.Series([marks.text() for _ in range(60)]),
        letter=pl.Series([marks.text() for _ in range(60)]),
    )
    project = opened(visitor, studio, "patients.csv", frame.write_csv().encode())
    assert post(visitor, project, "promise", k="3", l="") == 303
    assert post(visitor, project, "run", method="mondrian", seed="1") == 303
    project.tasks["run"].wait(60)
    assert project.release is not None, project.tasks["run"].progress()
    place = f"/p/{project.id}"
    taken = [f"report.{kind}" for kind in ("html", "json", "txt")] + [f"released{end}" for end in ENDINGS]
    found = {name: visitor.get(f"{place}/download/{name}") for name in [*taken, "policy.yaml"]}
    assert {answer.status_code for answer in found.values()} == {200}
    clean({name: answer.content + repr(answer.headers).encode() for name, answer in found.items()}, "studio")
    clean({"parquet": uncompressed(pl.read_parquet(found["released.parquet"].content))}, "studio")
