"""Kafka clients from a policy's source: properties from a file the user names, secrets from the environment or files.

The client library is the extra ``kafka``; it is imported here and in ``runtime`` only.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from shoal.core.errors import InputError, PolicyError, UsageError

# the client writes to standard error what it cannot go on after, whatever its level: our logs are one object per line
UNHEARD = logging.getLogger("shoal.unheard")
UNHEARD.addHandler(logging.NullHandler())
UNHEARD.propagate = False
TIMEOUT = 30.0  # seconds a broker may take to answer
REFUSED = 1.0  # seconds until we first look whether a login was refused, while a broker does not answer
SILENT = ("_TIMED_OUT", "_TRANSPORT")  # no answer yet
UNSTABLE = 2.0  # seconds another's commit may stay open before we look whose it is
# for readers who want what is there: a broker that waits for more makes them wait, and every other question on the
# same connection with them
READ_NOW = {"fetch.wait.max.ms": 20, "fetch.error.backoff.ms": 50}
LEADERLESS = ("NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "UNKNOWN_LEADER_EPOCH", "FENCED_LEADER_EPOCH")
PASSING = (
    "UNSTABLE_OFFSET_COMMIT",
    "REQUEST_TIMED_OUT",
    "_TIMED_OUT",
    "_TRANSPORT",
    "_WAIT_COORD",
)  # wait, and ask again
KEYS = (
    "use",
    "topic",
    "brokers",
    "properties",
    "format",
    "registry",
    "descriptor",
    "message",
    "group",
    "worker",
    "partitions",
    "replication",
)


class KafkaError(InputError):
    """The cluster cannot be reached, refuses us, or lacks something; ``name`` is the client's word for it.

    >>> issubclass(KafkaError, InputError), missing("patients").name
    (True, 'missing')
    """

    name = ""


class UnboundError(KafkaError):
    """Positions or state cannot be trusted: a new start cannot mend it, a person must decide.

    >>> UnboundError("someone moved it", where="kafka").name
    'unbound'
    """

    name = "unbound"


@dataclass(frozen=True)
class Source:
    """The Kafka source of a policy, checked: what it says, and where the policy's file is.

    >>> Source({"use": "kafka", "topic": "patients"}, "policy.yaml").group
    'shoal-patients'
    """

    said: Mapping[str, Any]
    path: str

    def __post_init__(self) -> None:
        if self.said.get("use") != "kafka":
            hint = "source: {use: kafka, topic: …, brokers: …}"
            raise PolicyError("the source is not kafka", where=self.path, hint=hint)
        for key in self.said:
            if key not in KEYS:
                hint = f"one of: {', '.join(KEYS)}"
                raise PolicyError(f"{key!r} is not known in a kafka source", where=self.path, hint=hint)
        if not isinstance(self.said.get("topic"), str):
            raise PolicyError("a kafka source needs its topic", where=self.path)

    @property
    def topic(self) -> str:
        """The topic all views are made of."""
        return str(self.said["topic"])

    @property
    def group(self) -> str:
        """The consumer group of the workers."""
        return str(self.said.get("group", f"shoal-{self.topic}"))

    @property
    def folder(self) -> Path:
        """Where the files lie that the policy names."""
        return Path(self.path).parent

    @property
    def properties(self) -> dict[str, Any]:
        """What the service's clients are made from; what goes wrong is told by errors, not by lines of the client."""
        return client_properties(self.said, self.folder, log_level=0, logger=UNHEARD)


def internal(topic: str, name: Literal["changelog", "dead", "audit", "control", "regions", "cuts"]) -> str:
    """A topic the service keeps for itself beside the source.

    >>> internal("patients", "audit")
    'patients.shoal.audit'
    """
    return f"{topic}.shoal.{name}"


def client_properties(source: Mapping[str, Any], folder: Path, **more: Any) -> dict[str, Any]:
    """What a client is made from: the properties file, then the policy's brokers, then ``more``.

    A value ``env:NAME`` or ``file:path`` is looked up, so that no secret stands in a policy or on a command line.

    >>> client_properties({"brokers": "localhost:9092"}, Path())["bootstrap.servers"]
    'localhost:9092'
    """
    properties: dict[str, Any] = {}
    if source.get("properties"):
        properties |= read_properties(folder / looked_up(str(source["properties"]), folder))
    if source.get("brokers"):
        properties["bootstrap.servers"] = source["brokers"]
    # after the brokers, which may be a secret's name, too
    properties = {k: looked_up(v, folder) if isinstance(v, str) else v for k, v in properties.items()}
    if "bootstrap.servers" not in properties:
        raise PolicyError("no brokers are named", where="source", hint="brokers: env:KAFKA_BROKERS")
    return {**properties, **more}


def read_properties(path: Path) -> dict[str, str]:
    """``key=value`` lines; ``#`` begins a comment.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "c.properties").write_text("# ours\\nsecurity.protocol=SSL\\n")
    ...     read_properties(Path(folder, "c.properties"))
    {'security.protocol': 'SSL'}
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"cannot read the client properties ({error.strerror})", where=str(path)) from None
    out: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        key, sign, value = text.partition("=")
        if not sign:
            raise UsageError("expected key=value", where=f"{path}, line {number}")
        out[key.strip()] = value.strip()
    return out


def looked_up(value: str, folder: Path) -> str:
    """``env:NAME`` from the environment, ``file:path`` from a file; anything else as it is.

    >>> looked_up("localhost:9092", Path())
    'localhost:9092'
    """
    kind, _, name = value.partition(":")
    if kind == "env":
        if name not in os.environ:
            raise UsageError(f"the environment variable {name} is not set", where="source")
        return os.environ[name]
    if kind == "file":
        try:
            return (folder / name).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise InputError(f"cannot read a secret's file ({error.strerror})", where=str(folder / name)) from None
    return value


def library() -> Any:
    """The client library, or how to get it.

    >>> library().__name__
    'confluent_kafka'
    """
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError:
        raise UsageError("the Kafka client is not installed", hint="pip install 'shoal[kafka]'") from None
    return confluent_kafka


def told(error: Any, doing: str) -> KafkaError:
    """A client's error as ours: what we were doing, its name, and what to do about the common ones.

    >>> told(TimeoutError(), "asking for topics").where
    'kafka'
    """
    name = error.name() if hasattr(error, "name") else type(error).__name__
    hints = {
        "_ALL_BROKERS_DOWN": "is the broker running, and are the address and the security settings right?",
        "_TRANSPORT": "is the broker running, and are the address and the security settings right?",
        "_TIMED_OUT": "is the broker running, and are the address and the security settings right?",
        "_AUTHENTICATION": "wrong user or password",
        "SASL_AUTHENTICATION_FAILED": "wrong user or password",
        "TOPIC_AUTHORIZATION_FAILED": "this user may not use the topic",
        "CLUSTER_AUTHORIZATION_FAILED": "this user may not change the cluster",
        "UNKNOWN_TOPIC_OR_PART": "does the topic exist?",
        "_UNKNOWN_TOPIC": "does the topic exist?",
        "_UNKNOWN_PARTITION": "was the topic deleted, or made again?",
    }
    made = KafkaError(f"{doing}: {name}", where="kafka", hint=hints.get(name))
    made.name = name
    return made


def kind_of(message: Any, doing: str) -> Literal["record", "end", "hiccup"]:
    """A record, the end of its partition, or an error the client mends by itself; any other is raised.

    >>> class Message:
    ...     def error(self):
    ...         return None
    >>> kind_of(Message(), "reading")
    'record'
    """
    error = message.error()
    if error is None:
        return "record"
    if error.name() == "_PARTITION_EOF":
        return "end"
    # what the client does not mend by itself would be waited for without end
    if error.fatal() or not error.retriable():
        raise told(error, doing)
    return "hiccup"


def produce(producer: Any, *record: Any, **more: Any) -> None:
    """Hand one record to a producer; a slow broker slows us.

    >>> class Producer:
    ...     def produce(self, topic, value):
    ...         print(topic, value)
    >>> produce(Producer(), "patients", b"{}")
    patients b'{}'
    """
    while True:
        try:
            producer.produce(*record, **more)
            return
        except BufferError:
            # its buffer is full: serving callbacks makes room
            producer.poll(0.1)


def ends_of(consumer: Any, topic: str, partitions: Collection[int]) -> dict[int, tuple[int, int]]:
    """The first offset of each partition and the one after its last record that can be read, asked at once."""
    kafka = library()

    def asked(which: int) -> dict[int, int]:
        end = time.monotonic() + TIMEOUT
        while True:
            places = [kafka.TopicPartition(topic, p, which) for p in partitions]
            try:
                found = consumer.offsets_for_times(places, timeout=TIMEOUT) if places else []
                wrong = next((place.error for place in found if place.error is not None), None)
            except kafka.KafkaException as error:
                wrong = error.args[0]
            if wrong is None:
                return {place.partition: int(place.offset) for place in found}
            # A partition that is new, or has just moved, has no leader for a moment; the client looks for it by itself.
            # We are called while partitions are assigned: a question that serves callbacks would end the process.
            if time.monotonic() > end or not (wrong.retriable() or wrong.name() in LEADERLESS):
                raise told(wrong, f"reading {topic}")
            time.sleep(0.1)

    low, high = asked(kafka.OFFSET_BEGINNING), asked(kafka.OFFSET_END)
    return {p: (low[p], high[p]) for p in partitions}


def committed(consumer: Any, places: list[Any], doing: str, *, unblock: Callable[[], None] | None = None) -> list[Any]:
    """Where a group stands; waits while a transaction about it is open: one that was killed left it so.

    ``unblock`` is called once if that takes longer than a commit should.

    >>> committed(None, [], "asking where the group stands")
    []
    """
    if not places:
        return []
    end = time.monotonic() + 2 * TIMEOUT
    while True:
        try:
            # the client itself asks again while a transaction is open, and says at the end that time is up
            found: list[Any] = consumer.committed(places, timeout=TIMEOUT if unblock is None else UNSTABLE)
            wrong = next((place.error for place in found if place.error is not None), None)
        except library().KafkaException as error:
            wrong = error.args[0]
        if wrong is None:
            return found
        passing = wrong.retriable() or wrong.name() in PASSING or "COORDINATOR" in wrong.name()
        if not passing or time.monotonic() > end:
            raise told(wrong, doing)
        if unblock is not None and wrong.name() in ("UNSTABLE_OFFSET_COMMIT", "_TIMED_OUT"):
            unblock()
            unblock = None
        time.sleep(0.1)


def topics_of(client: Any, failed: list[Any], doing: str, timeout: float = 15.0) -> Any:
    """The topics a client sees. A refused login is told by callback only: ``failed`` is where that put it.

    >>> class Client:
    ...     def list_topics(self, timeout):
    ...         return self
    ...     topics = {"patients": None}
    >>> list(topics_of(Client(), [], "asking for topics"))
    ['patients']
    """
    end, wait = time.monotonic() + timeout, REFUSED
    while True:
        try:
            return client.list_topics(timeout=wait).topics
        except library().KafkaException as error:
            client.poll(0)  # callbacks are served here only
            wrong = next((e for e in failed if e.name() == "_AUTHENTICATION"), error.args[0])
            left = end - time.monotonic()
            if left <= 0 or wrong.name() not in SILENT:
                raise told(wrong, doing) from None
            wait = min(2 * wait, max(left, REFUSED))  # a busy broker is given longer and longer


def topic_id(admin: Any, topic: str) -> str:
    """The id a topic got when it was made: a topic deleted and made again has the same name and another one."""
    kafka = library()
    try:
        found = admin.describe_topics(kafka.TopicCollection([topic]), request_timeout=TIMEOUT)[topic].result(TIMEOUT)
    except kafka.KafkaException as error:
        raise told(error.args[0], f"asking for {topic}") from None
    return str(found.topic_id)


def missing(topic: str, hint: str = "run `shoal serve apply` first") -> KafkaError:
    """A topic that must be there is not.

    >>> missing("patients").message
    "the topic 'patients' is not there"
    """
    made = KafkaError(f"the topic {topic!r} is not there", where="kafka", hint=hint)
    made.name = "missing"
    return made
