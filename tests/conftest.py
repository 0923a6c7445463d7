"""What all tests share: where the real data is, and that nothing is random by accident."""

from __future__ import annotations

import gc
import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    max_examples=60,  # the same ones in every run: more of them would find nothing new; `make fuzz` draws others
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("fuzz", settings.get_profile("house"), derandomize=False, max_examples=100, print_blob=True)
settings.load_profile("fuzz" if os.environ.get("SHOAL_FUZZ") else "house")

COMPUTE = 1  # worker that begins with what computes; all others begin with what waits
FILES = 4  # the last of those waits for so many files; with one more of them a core would have nothing to do later
# rooms that wait for a broker, Java, a database, a browser; and the fixture that starts it
SERVERS = {"tests/kafka/": "cluster", "tests/spark/": "spark", "tests/sql/": "server", "tests/browser/": "browser"}
WAITS = tuple(SERVERS)
TOGETHER = WAITS[1:]  # one worker each, because one start serves the whole room; brokers serve several
LONGEST = (  # files that take longest, the longest first
    "test_chaos",
    "test_table_methods",
    "test_spark_tables",
    "test_every_option",
    "test_service",
    "test_repartition",
    "test_roles_in_a_database",
    "test_stateful_worker",
    "test_recovery",
    "test_tools",
    "test_guide",
    "test_versions",
    "test_soak",
    "test_registry",
    "test_studio_page",
    "test_house",
    "test_z_experiments",
    "test_anonymize",
    "test_stream_checkpoints",
    "test_series_diverse",
    "test_stream_spread",
    "test_local_laws",
    "test_hierarchies",
    "test_series_laws",
    "test_regional_laws",
    "test_series_datasets",
    "test_known_values",
    "test_table_peers",
)
# Files whose laws cost most: each example is a release, a stream or a slow twin. One of several workers tries this many
# examples of such a law, the same ones every time; one room alone (`make test TESTS=…`) tries as many as the law says,
# and `make fuzz` draws new ones.
DEAR = {
    "test_anonymize", "test_castle_twins", "test_continuous_laws", "test_envelope_kernels", "test_foreign_promises",
    "test_forest_kernels", "test_hierarchies", "test_json_lines", "test_kafka_stateful", "test_known_values",
    "test_local_beside_others", "test_local_kernels", "test_local_laws", "test_local_rebuild", "test_local_reopen",
    "test_loss_scales", "test_mask_laws", "test_model_files", "test_mondrian_nodes", "test_pattern_laws",
    "test_plan_kernels", "test_poison", "test_promises", "test_reading_laws", "test_regional_laws",
    "test_register_promises", "test_reused_boxes", "test_series_diverse", "test_series_laws", "test_series_long",
    "test_stream_curves", "test_stream_groups", "test_stream_spread", "test_stream_times", "test_stream_utility",
    "test_suggest", "test_table_kernels", "test_table_methods", "test_time_laws", "test_topdown_kernel",
    "test_trajectories", "test_two_engines", "test_view_laws", "test_what_descriptions_tell", "test_what_roles_link",
    "test_what_roles_tell_elsewhere", "test_widening_laws", "test_window_laws", "test_z_kernels", "test_z_oracle",
    "test_z_tuning", "test_zero_laws",
}  # fmt: skip
BESIDE_OTHERS = "PYTEST_XDIST_WORKER" in os.environ
EXAMPLES = int(os.environ.get("SHOAL_EXAMPLES", "12" if BESIDE_OTHERS else "0"))  # 0: as many as the law says
FEW = 5  # members of a family; where a law has more of them, each tries fewer, at least half as many
if BESIDE_OTHERS:
    # four workers share two cores: more threads of polars would only wait for each other, a fifth of the CPU time
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
# brokers and Spark live a few minutes here: what the second compiler of Java would gain later, it costs now
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# a turn of fuzzing, as scripts/fuzz.py says it: CPU seconds, the family of each file, laws that were tried before
TURN = json.loads(Path(os.environ["SHOAL_FUZZ_TURN"]).read_text()) if "SHOAL_FUZZ_TURN" in os.environ else {}
FIRST: set[str] = set()  # a law of each family


def pytest_configure(config: pytest.Config) -> None:
    """A shell that starts this in the background lets it ignore Ctrl-C, and every command that a test starts, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A turn of fuzzing ends between two laws when its time is up, but each family has one."""
    if sum(os.times()[:4]) > TURN.get("seconds", float("inf")) and item.nodeid not in FIRST:
        pytest.skip("time is up")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """A server ends when this worker goes on to another room: a broker that nobody asks takes a fortieth of a core."""
    room = next((room for room in SERVERS if item.nodeid.startswith(room)), None)
    if BESIDE_OTHERS and room is not None and nextitem is not None and not nextitem.nodeid.startswith(room):
        for fixture in item.session._fixturemanager.getfixturedefs(SERVERS[room], item) or ():
            fixture.finish(item._request)  # type: ignore[attr-defined] # who asks later gets another one


def in_turns(items: list[pytest.Item], families: dict[str, str]) -> list[pytest.Item]:
    """A law of each family, then another of each."""
    count: Counter[str] = Counter()
    turns: dict[pytest.Item, int] = {}
    for item in items:
        family = families.get(item.nodeid.partition("::")[0], "")
        turns[item] = count[family]
        count[family] += 1
    return sorted(items, key=turns.__getitem__)  # stable: the order of the seed otherwise


SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the repository; tests that want it skip cleanly without it."""
    if not (SHARED / "data").is_dir():
        pytest.skip("the shared data is not beside the repository")
    return SHARED


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    """Tests try compiled code, however small their tables are; what runs without it is compared with it."""
    from shoal.kernels import interpreted

    interpreted.allowed = False


class ByFile(LoadScopeScheduling):
    """A file's tests stay on one worker, and so do those of a room that shares one server. What waits goes to the first
    few workers, and to them first: a test that waits leaves its core to the others, and each worker that needs a broker
    starts one of its own."""

    had = 0  # files of the last worker that begins with what waits

    def _split_scope(self, nodeid: str) -> str:
        return next((room for room in TOGETHER if nodeid.startswith(room)), nodeid.partition("::")[0])

    def _assign_work_unit(self, node: WorkerController) -> None:
        last = len(self.nodes) - COMPUTE - 1
        self.had += self.nodes.index(node) == last
        waits = self.nodes.index(node) < last or (self.nodes.index(node) == last and self.had <= FILES)
        mine = next((unit for unit in self.workqueue if unit.startswith(WAITS) == waits), next(iter(self.workqueue)))
        self.workqueue.move_to_end(mine, last=False)  # the next to be handed out
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    """In place of the choices of `--dist`: none of them knows which tests wait."""
    return ByFile(config, log)


def pytest_collection_finish() -> None:
    """What is loaded now stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first, or the last one would keep one worker busy when all others have ended.

    A fuzz run has the laws that draw, in another order every time, without those that it has tried in this round, the
    families in turns.
    """
    if os.environ.get("SHOAL_FUZZ_SEED"):
        drawing = [item for item in items if is_hypothesis_test(getattr(item, "obj", None))]
        items[:] = [item for item in drawing if item.nodeid not in TURN.get("tried", ())]
        random.Random(int(os.environ["SHOAL_FUZZ_SEED"])).shuffle(items)
        families = TURN.get("families", {})
        items[:] = in_turns(items, families)
        FIRST.update(item.nodeid for item in items[: len(set(families.values()))])
        return
    if EXAMPLES:
        # a test may run laws of other files, which are its parameters
        dear = [item for item in items if item.path.stem in DEAR]
        given = [value for item in dear for value in getattr(getattr(item, "callspec", None), "params", {}).values()]
        laws = [law for law in (*(getattr(item, "obj", None) for item in dear), *given) if is_hypothesis_test(law)]
        for law, members in Counter(laws).items():
            _limit(law, EXAMPLES if members <= FEW else max(EXAMPLES // 2, EXAMPLES * FEW // members))
    first = {name: at for at, name in enumerate(LONGEST)}
    items.sort(key=lambda item: first.get(item.path.stem, len(LONGEST)))  # stable: the order of collection otherwise


def _limit(law: Callable[..., None], most: int) -> None:
    # a law says with `@settings` how many examples it wants, and Hypothesis has no other way to ask for fewer
    said = law._hypothesis_internal_use_settings  # type: ignore[attr-defined]
    if said.max_examples > most:
        law._hypothesis_internal_use_settings = settings(said, max_examples=most)  # type: ignore[attr-defined]
