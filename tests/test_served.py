"""An index on a real Chroma server: several clients, one of them writing, no shared disk."""

from __future__ import annotations

import http.server
import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from test_concurrency import line, running, until, write
from word_vectors import WordVectors

from rag.errors import IndexBusyError, IndexMismatchError, ServerError
from rag.filters import Filters
from rag.index import Index, discard
from rag.places import store_of
from rag.retrieval import retrieve
from rag.settings import Settings

CHROMA = Path(sys.executable).parent / "chroma"
pytestmark = pytest.mark.slow

READER = """
import json, sys
from pathlib import Path
from rag.index import Index
from rag.places import store_of
from rag.retrieval import retrieve
from rag.settings import Settings
from word_vectors import WordVectors

url, collection, folder, end = sys.argv[1:]
settings = Settings.load(index=folder, chroma_url=url, chroma_collection=collection)
with Index.open(store_of(settings), WordVectors("words"), what="a reader") as index:
    while not Path(end).exists():
        hits = retrieve(index, "studied", 100).hits
        print(json.dumps(sorted(hit.record.abstract for hit in hits)), flush=True)
"""

# Ingests under a lease of two seconds, and waits when it has embedded two records.
WRITER = """
import sys
from pathlib import Path
import rag.changes, rag.lease
from rag.index import Index
from rag.places import store_of
from rag.settings import Settings
from word_vectors import WordVectors

rag.changes._BATCH = 1
rag.lease._LASTS_NS, rag.lease._RENEWED_S = 2_000_000_000, 0.5

def wait(stage, done, total):
    if stage == "embedding" and done == 2:
        print("waiting", flush=True)
        sys.stdin.readline()

url, collection, folder, papers = sys.argv[1:]
store = store_of(Settings.load(index=folder, chroma_url=url, chroma_collection=collection))
with Index.open(store, WordVectors("words"), what="a slow writer", create=True) as index:
    index.sync([Path(papers)], wait)
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running server."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    folder = tmp_path_factory.mktemp("server")
    command = [CHROMA, "run", "--path", folder, "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                httpx.get(f"{address}/api/v2/heartbeat")
                break
            except httpx.TransportError:
                assert process.poll() is None
                time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def collection() -> str:
    """A name that no other test uses."""
    return f"test-{uuid.uuid4().hex}"


def opened(url: str, collection: str, folder: Path, **options: Any) -> Index:
    settings = Settings.load(index=folder, chroma_url=url, chroma_collection=collection, **options)
    return Index.open(store_of(settings), WordVectors("words"), what="a test", create=True)


def found(index: Index, query: str = "studied", **criteria: Any) -> list[tuple[str, float]]:
    """Abstracts with their scores, best first; rounded, as sums may differ in the last bit."""
    hits = retrieve(index, query, 100, Filters.of(**criteria)).hits
    pairs = [(hit.record.abstract, round(hit.score, 4)) for hit in hits]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


def texts(index: Index) -> set[str]:
    return {text for text, _ in found(index)}


def test_the_results_are_those_of_the_embedded_store(
    url: str, collection: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    papers = [
        {
            "title": f"Paper {n}",
            "abstract": f"Topic{n % 7} is studied with tool{n}. It ends well{n % 3}.",
            "doi": f"10.1/{n}",
            "year": 2000 + n % 5,
            "venue": "ICLR" if n % 2 else "Nature",
        }
        for n in range(60)
    ]
    path.write_text("".join(json.dumps(paper) + "\n" for paper in papers), "utf-8")
    embedded = Index.open(tmp_path / "i", WordVectors("words"), what="a test", create=True)
    with embedded, opened(url, collection, tmp_path / "c") as served:
        assert served.sync([path]) == embedded.sync([path])
        for query in ("topic3", "ends well2 with tool17", "studied"):
            assert found(served, query) == found(embedded, query)
            some = found(served, query, year="2001-2002", venue="ICLR")
            assert some == found(embedded, query, year="2001-2002", venue="ICLR")
            assert len(some) == 12
        record = retrieve(served, "tool17", 1).hits[0].record
        for one, other in zip(served.sentences(record), embedded.sentences(record), strict=True):
            assert (one.start, one.end) == (other.start, other.end)
            assert one.vector == pytest.approx(other.vector, abs=1e-6)
        assert served.sync([path]).unchanged == 60


def test_other_clients_follow_edits_and_removals(
    url: str, collection: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag.served._GRACE_NS", 0)
    path = tmp_path / "a.jsonl"
    with opened(url, collection, tmp_path / "w") as writer:
        old = write(path, "alpha", range(6))
        writer.sync([path])
        with opened(url, collection, tmp_path / "r") as reader:
            assert texts(reader) == old
            for word, numbers in (("beta", range(3, 9)), ("gamma", range(2)), ("beta", range(5))):
                new = write(path, word, numbers)
                writer.sync([path])
                assert texts(reader) == texts(writer) == new
            # What no generation needs any more is gone from the server, at the next change.
            write(path, "beta", range(1, 5))
            writer.sync([path])
            assert reader.vectors.count("sentence") <= 2 * 5
        with opened(url, collection, tmp_path / "late") as late:
            assert texts(late) == texts(writer)


def test_clients_see_the_old_or_the_new_corpus_while_one_writes(
    url: str, collection: str, tmp_path: Path
) -> None:
    path, end = tmp_path / "a.jsonl", tmp_path / "end"
    old = write(path, "alpha", range(20))
    with opened(url, collection, tmp_path / "w") as writer:
        writer.sync([path])
        arguments = (collection, tmp_path / "r", end)
        with running(READER, url, *arguments) as one, running(READER, url, *arguments) as other:
            corpora: list[set[str]] = []
            for reader in (one, other):
                until(reader, old, corpora.append)
            new = write(path, "beta", range(10, 30))
            writer.sync([path])
            for reader in (one, other):
                until(reader, new, corpora.append)
            end.touch()
            for reader in (one, other):
                rest, _ = reader.communicate()
                corpora += [set(json.loads(row)) for row in rest.splitlines()]
                assert reader.returncode == 0
    assert all(corpus in (old, new) for corpus in corpora)


def test_a_second_writer_is_refused_and_a_killed_one_is_followed(
    url: str, collection: str, tmp_path: Path
) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    old = write(papers / "a.jsonl", "alpha", range(2))
    with opened(url, collection, tmp_path / "c") as index:
        index.sync([papers])
        new = old | write(papers / "b.jsonl", "beta", range(2, 7))
        with running(WRITER, url, collection, tmp_path / "other", papers) as writer:
            assert line(writer) == "waiting"
            holder = rf"a slow writer \(process {writer.pid} on {socket.gethostname()}\), since 2"
            with pytest.raises(IndexBusyError, match=holder):
                index.sync([papers])
            assert texts(index) == old
        assert isinstance(index.embedding, WordVectors)
        index.embedding.texts = []
        for _ in range(100):
            try:
                report = index.sync([papers])
                break
            except IndexBusyError:
                time.sleep(0.2)
        assert (report.added, report.records) == (5, 7)
        embedded = " ".join(index.embedding.texts)
        assert [f"Topic{n} " in embedded for n in range(7)] == [False] * 4 + [True] * 3
        assert texts(index) == new


def test_an_index_of_another_model_or_a_rebuilt_one(
    url: str, collection: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    write(path, "alpha", range(3))
    with opened(url, collection, tmp_path / "c") as index:
        index.sync([path])
        settings = Settings.load(index=tmp_path / "d", chroma_url=url, chroma_collection=collection)
        with pytest.raises(IndexMismatchError, match=r"embed_model 'words'.*--rebuild"):
            Index.open(store_of(settings), WordVectors("others"), what="a test")
        discard(store_of(settings))
        assert texts_or_empty(index) == set()
        new = write(path, "beta", range(2, 6))
        with Index.open(
            store_of(settings), WordVectors("others"), what="a test", create=True
        ) as rebuilt:
            rebuilt.sync([path])
            assert texts(rebuilt) == new


def texts_or_empty(index: Index) -> set[str]:
    with index.pinned() as snapshot:
        return {entry.record.abstract for entry in snapshot.catalogue.entries()}


class Proxy(http.server.ThreadingHTTPServer):
    """Hands requests on to a server, if they carry `wanted`, after refusing some of them."""

    daemon_threads = True

    def __init__(self, target: str, wanted: tuple[str, str], refused: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), _Hand)
        self.target, self.wanted, self.refused = target, wanted, refused
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Hand(http.server.BaseHTTPRequestHandler):
    server: Proxy

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        name, value = self.server.wanted
        if self.headers.get(name) != value:
            self._send(401, b"who are you?")
        elif self.server.refused > 0:
            self.server.refused -= 1
            self._send(503, b"busy")
        else:
            headers = {"Content-Type": "application/json"}
            target = self.server.target + self.path
            answer = httpx.request(self.command, target, content=body, headers=headers, timeout=60)
            self._send(answer.status_code, answer.content)

    do_POST = do_PUT = do_DELETE = do_GET

    def _send(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        pass


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, ("Authorization", "Bearer secret")),
        ({"chroma_token_header": "X-Chroma-Token"}, ("X-Chroma-Token", "secret")),
    ],
)
def test_a_token_goes_along_and_a_busy_server_is_asked_again(
    url: str, collection: str, tmp_path: Path, options: dict[str, str], wanted: tuple[str, str]
) -> None:
    proxy = Proxy(url, wanted)
    threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
    try:
        with pytest.raises(ServerError, match=r"refuses this client \(HTTP 401\): set RAG_CHR"):
            opened(proxy.url, collection, tmp_path / "c", **options)
        proxy.refused = 2
        path = tmp_path / "a.jsonl"
        new = write(path, "alpha", range(3))
        options = {"chroma_token": "secret", **options}
        with opened(proxy.url, collection, tmp_path / "c", **options) as index:
            index.sync([path])
            proxy.refused = 2
            assert texts(index) == new
    finally:
        proxy.shutdown()
        proxy.server_close()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_certificate_of_ones_own_is_trusted_when_it_is_named(
    url: str, collection: str, tmp_path: Path
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate} -days 2"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made.split(), *subject], check=True, capture_output=True)
    proxy = Proxy(url, ("Authorization", "Bearer secret"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    proxy.socket = context.wrap_socket(proxy.socket, server_side=True)
    threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
    address = proxy.url.replace("http:", "https:")
    try:
        with pytest.raises(ServerError, match=r"cannot be reached .*certificate"):
            opened(address, collection, tmp_path / "c", chroma_token="secret")
        options = {"chroma_token": "secret", "chroma_ca": certificate}
        with opened(address, collection, tmp_path / "c", **options) as index:
            assert len(index) == 0
    finally:
        proxy.shutdown()
        proxy.server_close()


def test_a_server_that_is_away_or_another_one_is_said_in_a_line(
    collection: str, tmp_path: Path
) -> None:
    with pytest.raises(ServerError, match=r"http://127\.0\.0\.1:9 cannot be reached .*: start it"):
        opened("http://127.0.0.1:9", collection, tmp_path / "c")
    handler = http.server.SimpleHTTPRequestHandler
    handler.log_message = lambda *args: None  # type: ignore[method-assign]
    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=other.serve_forever, args=(0.05,), daemon=True).start()
    try:
        with pytest.raises(ServerError, match=r"does not answer like a Chroma server \(HTTP 404"):
            opened(f"http://127.0.0.1:{other.server_port}", collection, tmp_path / "c")
    finally:
        other.shutdown()
        other.server_close()


def test_a_lost_copy_is_fetched_again(url: str, collection: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    new = write(path, "alpha", range(3))
    with opened(url, collection, tmp_path / "c") as index:
        index.sync([path])
    shutil.rmtree(tmp_path / "c")
    with opened(url, collection, tmp_path / "c") as index:
        assert texts(index) == new
