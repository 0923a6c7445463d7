"""Real Apache Kafka brokers (KRaft, SASL/SCRAM, deny by default) in a folder: for tests and for ``make kafka``.

python -m scripts.kafka.broker            one broker in a folder of its own until Ctrl-C; says how to log in
python -m scripts.kafka.broker --warm     makes what later ones start faster with
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from scripts.kafka.identities import ISSUER, Authority, Issuer, principal

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "kafka"
LIB = CACHE / "lib"
FORMATTED = CACHE / "formatted"  # folders of brokers before their first start
CLASSES = CACHE / "classes"
ADMIN, SECRET = "admin", "admin-secret"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
JAVA = ("java", "-Xms128m", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
TRUSTED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls"  # where a broker may look for keys
NAME = "AAAAAAAAAAAAAAAAAAAAAQ"  # of every cluster: none of them outlives its folder
PROTOCOLS = "CLIENT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"


def available() -> str | None:
    """Why no broker can run here, or nothing if one can."""
    if shutil.which("java") is None:
        return "no Java"
    if not (LIB / ".whole").exists():
        return "the broker's jars are not there (sh scripts/kafka/jars.sh)"
    return None


def kept_classes() -> Path:
    """Where Java keeps what it has read and checked of the jars: a broker then starts for two thirds of the CPU time.

    A Java of another version passes it by.
    """
    java = Path(shutil.which("java") or "java").resolve()
    made_of = "\n".join([str(java), *sorted(jar.name for jar in LIB.glob("*.jar"))])
    return CLASSES / f"{hashlib.sha256(made_of.encode()).hexdigest()[:16]}.jsa"


def keep_classes() -> None:
    """Make that: by a broker that starts and ends once."""
    if kept_classes().exists():
        return
    CLASSES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CLASSES) as folder:
        draft = Path(folder) / "classes.jsa"
        quiet = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
        cluster = Cluster(Path(folder) / "broker", doors=True, options=(f"-XX:ArchiveClassesAtExit={draft}", *quiet))
        cluster.start().stop()
        if cluster.running[1].returncode == 128 + signal.SIGTERM:  # it ended by itself, so the file is whole
            draft.replace(kept_classes())


@dataclass
class Cluster:
    """One or more brokers on loopback, in a folder of their own. ``start`` formats, starts and waits.

    With ``doors`` the first one also lets in whoever has a certificate (mTLS) or a token (OAuth).
    """

    folder: Path
    brokers: int = 1
    settings: dict[str, str] = field(default_factory=dict)
    doors: bool = False
    options: tuple[str, ...] = ()  # of Java
    ports: list[tuple[int, int]] = field(default_factory=list)
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self) -> Cluster:
        """Start all brokers; raises with the end of the log if one does not come up."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ports = [(free_port(), free_port()) for _ in range(self.brokers)]
        if self.doors:
            self.authority, self.issuer = Authority(self.folder / "certificates"), Issuer(self.folder / "tokens")
            self.authority.certify("broker")
            self.door_ports = {"TLS": free_port(), "TOKEN": free_port()}
        for node in range(1, self.brokers + 1):
            (self.folder / f"{node}.properties").write_text(self._properties(node))
            self._format(node)
        for node in range(1, self.brokers + 1):
            self.launch(node)
        for node in range(1, self.brokers + 1):
            self._wait(node)
        return self

    def _format(self, node: int) -> None:
        """The folder of a broker before its first start: made once, then copied. The tool is a Java of its own, and
        costs as much as the start of a broker."""
        words = ["format", "-t", NAME, "-c", f"{node}.properties"]
        for kind in MECHANISMS:
            words += ["--add-scram", f"{kind}=[name={ADMIN},password={SECRET}]"]
        made_of = "\n".join([*words, *sorted(jar.name for jar in LIB.glob("*.jar"))])
        kept, made = FORMATTED / hashlib.sha256(made_of.encode()).hexdigest()[:16], self.folder / f"data{node}"
        if kept.is_dir():
            shutil.copytree(kept, made)
            return
        self._tool("kafka.tools.StorageTool", *words)
        draft = FORMATTED / uuid.uuid4().hex  # others may start now, too: the folder is there whole or not at all
        shutil.copytree(made, draft)
        try:
            draft.rename(kept)
        except OSError:
            shutil.rmtree(draft)

    def launch(self, node: int) -> None:
        """Start one broker (again)."""
        trusted = [f"{TRUSTED}={self.issuer.keys.resolve().as_uri()}"] if self.doors else []
        classes = [f"-XX:SharedArchiveFile={kept_classes()}"] if kept_classes().exists() else []
        with (self.folder / f"{node}.log").open("ab") as log:
            self.running[node] = subprocess.Popen(
                [*JAVA, *classes, *self.options, *trusted, "-cp", f"{LIB}/*", "kafka.Kafka", f"{node}.properties"],
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )

    def kill(self, node: int, how: signal.Signals = signal.SIGKILL) -> None:
        """Stop one broker, by default with SIGKILL."""
        self.running[node].send_signal(how)
        self.running[node].wait(60)

    def stop(self) -> None:
        """Stop all brokers."""
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self.doors:
            self.issuer.close()

    @property
    def bootstrap(self) -> str:
        """Where clients connect."""
        return ",".join(f"127.0.0.1:{client}" for client, _ in self.ports)

    def login(self, user: str = ADMIN, password: str = SECRET, mechanism: str = MECHANISMS[0]) -> dict[str, str]:
        """Client properties of a user."""
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }

    def certified(self, name: str) -> dict[str, str]:
        """Client properties of whoever has a certificate of this name."""
        folder = self.authority.certify(name)
        return {
            "bootstrap.servers": f"127.0.0.1:{self.door_ports['TLS']}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(folder / "ca.pem"),
            "ssl.certificate.location": str(folder / f"{name}.pem"),
            "ssl.key.location": str(folder / f"{name}.key"),
        }

    def tokened(self, name: str) -> dict[str, str]:
        """Client properties of whoever gets a token of this name."""
        return {
            "bootstrap.servers": f"127.0.0.1:{self.door_ports['TOKEN']}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": name,
            "sasl.oauthbearer.client.secret": f"{name}-secret",
            "sasl.oauthbearer.token.endpoint.url": self.issuer.address,
        }

    def _door_settings(self, listeners: str) -> dict[str, str]:
        """What the broker needs to know of the two more listeners."""
        folder, oauth = self.authority.folder.resolve(), "org.apache.kafka.common.security.oauthbearer"
        places = ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.door_ports.items())
        jaas = f'{oauth}.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{ADMIN}";'
        return {
            "listeners": f"{listeners},{places}",
            "advertised.listeners": f"{listeners.partition(',')[0]},{places}",
            "listener.security.protocol.map": f"{PROTOCOLS},TLS:SSL,TOKEN:SASL_PLAINTEXT",
            "listener.name.tls.ssl.client.auth": "required",
            "listener.name.tls.ssl.keystore.type": "PEM",
            "listener.name.tls.ssl.keystore.location": str(folder / "broker.both"),
            "listener.name.tls.ssl.truststore.type": "PEM",
            "listener.name.tls.ssl.truststore.location": str(folder / "ca.pem"),
            "listener.name.token.sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.token.oauthbearer.sasl.jaas.config": jaas,
            "listener.name.token.oauthbearer.sasl.server.callback.handler.class": (
                f"{oauth}.OAuthBearerValidatorCallbackHandler"
            ),
            "listener.name.token.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": self.issuer.keys.resolve().as_uri(),
            "listener.name.token.oauthbearer.sasl.oauthbearer.expected.audience": ISSUER,
            "listener.name.token.oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
            "super.users": f"User:{ADMIN};User:{principal(ADMIN)}",
        }

    def _properties(self, node: int) -> str:
        client, controller = self.ports[node - 1]
        voters = ",".join(f"{i}@127.0.0.1:{c}" for i, (_, c) in enumerate(self.ports, 1))
        listeners = f"CLIENT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}"
        copies = str(min(3, self.brokers))
        in_sync = str(max(1, min(2, self.brokers - 1)))
        jaas = f'required username="{ADMIN}" password="{SECRET}"'
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
        values = {
            "process.roles": "broker,controller",
            "node.id": str(node),
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": listeners,
            "advertised.listeners": f"CLIENT://127.0.0.1:{client}",
            "inter.broker.listener.name": "CLIENT",
            "listener.security.protocol.map": PROTOCOLS,
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
            **{f"listener.name.client.{kind.lower()}.sasl.jaas.config": f"{scram} {jaas};" for kind in MECHANISMS},
            # the controllers keep the SCRAM credentials, so they cannot log in with them
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": f'{plain} {jaas} user_{ADMIN}="{SECRET}";',
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{ADMIN}",
            "log.dirs": f"data{node}",
            "auto.create.topics.enable": "false",
            "default.replication.factor": copies,
            "min.insync.replicas": in_sync,
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": in_sync,
            "transaction.state.log.num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.min.isr": in_sync,
            "group.initial.rebalance.delay.ms": "0",
            "broker.session.timeout.ms": "6000",
            "group.consumer.session.timeout.ms": "6000",
            "group.consumer.min.session.timeout.ms": "3000",
            "group.consumer.heartbeat.interval.ms": "1000",
            "group.consumer.min.heartbeat.interval.ms": "500",
            **(self._door_settings(listeners) if self.doors and node == 1 else {}),
            **self.settings,
        }
        return "".join(f"{key}={value}\n" for key, value in values.items())

    def _tool(self, name: str, *words: str) -> str:
        done = subprocess.run(
            ["java", QUIET, "-cp", f"{LIB}/*", name, *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{name} {words[0]}: {done.stderr[-500:]}")
        return done.stdout

    def _wait(self, node: int, seconds: float = 120.0) -> None:
        port = self.ports[node - 1][0]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.running[node].poll() is not None:
                break
            with socket.socket() as knock:
                knock.settimeout(1.0)
                if knock.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.2)
        raise RuntimeError(f"broker {node} did not start:\n{(self.folder / f'{node}.log').read_text()[-1500:]}")


def free_port() -> int:
    """A port nobody uses now."""
    with socket.socket() as knock:
        knock.bind(("127.0.0.1", 0))
        return int(knock.getsockname()[1])


def main() -> int:
    """One broker to play with."""
    why = available()
    if why:
        sys.stderr.write(f"no broker: {why}\n")
        return 3
    if "--warm" in sys.argv[1:]:
        keep_classes()
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    cluster = Cluster(Path(tempfile.mkdtemp(prefix="shoal-kafka-"))).start()
    login = "".join(f"{k}={v}\n" for k, v in cluster.login().items())
    file = CACHE / "admin.properties"
    file.write_text(login)
    sys.stdout.write(
        f"a broker listens on {cluster.bootstrap}; log in as {ADMIN} with {os.path.relpath(file)}; Ctrl-C stops it\n"
    )
    sys.stdout.flush()
    try:
        cluster.running[1].wait()
    except KeyboardInterrupt:
        pass
    finally:
        cluster.stop()
        shutil.rmtree(cluster.folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
