"""Shards on a server that is asked for parts of files: what they cost in memory and traffic, what they are
called, and what happens when the server goes away. Data are up to 20 times as large as the memory that is
allowed for them."""

import gzip
import http.server
import io
import json
import os
import re
import subprocess
import tarfile
import threading
import time

import numpy as np
import pytest

LIMIT = 16_000_000  # bytes of memory for remote files: the least that is taken
SIDE = 240  # pictures of 173 kB
NAMES = ["ant", "bee", "cat", "dog"]

RECIPE = """
[data]
train = "{train}"
cache_mb = 0
[input]
crop = 8
mean = [0.5, 0.5, 0.5]
std = [0.25, 0.25, 0.25]
[output]
kind = "class"
[model]
layers = ["global-avg-pool", "linear 4"]
[train]
epochs = 1
batch = 8
optimizer = {{ kind = "sgd", lr = 0.1 }}
"""


class Server:
    """Serves a folder, counts what it is asked for, and can go away: nothing is answered any more, on
    connections that are open neither. `fault(path)`: a status to answer with, or None."""

    def __init__(self, folder):
        self.folder, self.lock, self.port, self.fault = folder, threading.Lock(), 0, lambda path: None
        self.when = None  # (number of requests, what is done before it is answered)
        self.clear()
        self.start()

    def clear(self):
        self.ranges, self.bytes, self.at_once, self.most_at_once = [], 0, 0, 0

    def start(self):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version, disable_nagle_algorithm, wbufsize = "HTTP/1.1", True, -1

            def log_message(self, *_):
                pass

            def do_GET(self):
                server.answer(self)

        class Threads(http.server.ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 64

        self.there = True
        self.http = Threads(("127.0.0.1", self.port), Handler)
        self.port = self.http.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self):
        self.there = False
        threading.Thread(target=self.http.shutdown).start()
        self.http.socket.close()

    def answer(self, to):
        path = self.folder / to.path.lstrip("/")
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            if self.when and len(self.ranges) >= self.when[0]:
                self.when, act = None, self.when[1]
                act()
        try:
            if not self.there:
                to.close_connection = True
                return
            status = self.fault(to.path) or (206 if path.is_file() else 404)
            headers, part = {}, b"<html>" + b"a page about what went wrong " * 10_000
            if status == 206:
                size = path.stat().st_size
                first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", to.headers["Range"]).groups())
                last = min(last, size - 1)
                with path.open("rb") as file:
                    file.seek(first)
                    part = file.read(last - first + 1)
                headers = {"Content-Range": f"bytes {first}-{last}/{size}", "ETag": '"1"'}
                with self.lock:
                    self.bytes += len(part)
                    self.ranges.append((to.path, first, last + 1))
            to.send_response(status)
            for name, value in {"Content-Length": str(len(part)), **headers}.items():
                to.send_header(name, value)
            to.end_headers()
            to.wfile.write(part)
            to.wfile.flush()
        except ConnectionError:
            pass
        finally:
            with self.lock:
                self.at_once -= 1


def write_shards(folder, size, shards=2):
    """Pictures of four classes, of random bytes, as `millrace pack` lays them out; so many bytes in all."""
    random = np.random.default_rng(1)
    folder.mkdir()
    count = size // (SIDE * SIDE * 3 + 2048) // shards
    for shard in range(shards):
        with tarfile.open(folder / f"train-{shard:06}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(shard * count, (shard + 1) * count):
                pixels = random.integers(0, 128, (SIDE, SIDE, 3), dtype=np.uint8) + np.uint8(32 * (i % 4))
                picture = b"P6 %d %d 255\n" % (SIDE, SIDE) + pixels.tobytes()
                for extension, content in (("cls", str(i % 4).encode()), ("ppm", picture)):
                    info = tarfile.TarInfo(f"{i:06}.{extension}")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
    (folder / "train.json").write_text(json.dumps({"format": "millrace-shards", "version": 1, "classes": NAMES, "shards": []}))
    return folder


def index(binary, folder):
    for tar in sorted(folder.glob("*.tar")):
        subprocess.run([binary, "data", "index", tar], check=True, capture_output=True)
    return folder


def stored(folder):
    return sum(tar.stat().st_size for tar in folder.glob("*.tar"))


@pytest.fixture(scope="module")
def large(binary, tmp_path_factory):
    """20 times the limit."""
    return index(binary, write_shards(tmp_path_factory.mktemp("large") / "set", 20 * LIMIT))


@pytest.fixture(scope="module")
def small(binary, tmp_path_factory):
    """As much as the limit."""
    return index(binary, write_shards(tmp_path_factory.mktemp("small") / "set", LIMIT))


@pytest.fixture
def serve():
    servers = []

    def one(folder):
        servers.append(Server(folder))
        return servers[-1]

    yield one
    for server in servers:
        if server.there:
            server.stop()


@pytest.fixture
def environment(tmp_path):
    return {"MILLRACE_CACHE": str(tmp_path / "cache"), "MILLRACE_DATA_CACHE": "0", "MILLRACE_DATA_CACHE_MEMORY": "16MB"}


def recipe(folder, source, name="r.toml"):
    (folder / name).write_text(RECIPE.format(train=f"{source}/train-{{000000..000001}}.tar"))
    return folder / name


def losses(run):
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines if "loss" in line]


def anonymous(binary, arguments, environment):
    """The most anonymous memory that a run of the program had (RssAnon; None where the system does not
    tell)."""
    if not os.path.exists("/proc/self/status") or "RssAnon" not in open("/proc/self/status").read():
        pytest.skip("this system does not tell RssAnon")
    process = subprocess.Popen([binary, *map(str, arguments)], env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    most = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as status:
                found = re.search(r"RssAnon:\s+(\d+) kB", status.read())
            most = max(most, int(found[1]) * 1024 if found else 0)
        except OSError:
            pass
        time.sleep(0.01)
    assert process.returncode == 0, process.stderr.read().decode()
    return most


@pytest.mark.parametrize("disk", ["0", "10GB"])
@pytest.mark.parametrize("share", [0.1, 1, 20])
def test_memory_of_remote_files_is_bounded(binary, large, small, serve, environment, tmp_path, share, disk):
    """Beside what the same training takes of local files: no more than the limit, whatever the size of the
    data."""
    folder = {1: small, 20: large}.get(share) or index(binary, write_shards(tmp_path / "set", int(share * LIMIT)))
    environment["MILLRACE_DATA_CACHE"] = disk
    # The first fills the cache of compiled kernels.
    here = [anonymous(binary, ["train", recipe(tmp_path, folder), "--out", tmp_path / f"here{i}"], environment) for i in range(2)]
    there = anonymous(binary, ["train", recipe(tmp_path, serve(folder).url), "--out", tmp_path / "there"], environment)
    assert there - here[1] <= LIMIT + 8_000_000
    assert losses(tmp_path / "there") == losses(tmp_path / "here0")


def test_memory_of_shards_without_an_index_is_bounded(binary, large, serve, environment, tmp_path):
    """They are gone through, not kept; and asked for their classes without going through them again."""
    for path in large.iterdir():
        if path.suffix != ".mrx":
            (tmp_path / path.name).symlink_to(path)
    here = anonymous(binary, ["train", recipe(tmp_path, large), "--out", tmp_path / "here"], environment)
    server = serve(tmp_path)
    there = anonymous(binary, ["train", recipe(tmp_path, server.url), "--out", tmp_path / "there"], environment)
    assert there - here <= LIMIT + 12_000_000  # and where the samples lie
    assert losses(tmp_path / "there") == losses(tmp_path / "here")
    assert server.bytes <= 2.3 * stored(large)  # the pass, and the epoch


def test_an_epoch_in_random_order_fetches_its_bytes_once(millrace, large, serve, environment, tmp_path):
    """Without a disk: each sample alone, no more bytes than 1.3 times what is needed, several at once."""
    server = serve(large)
    millrace("train", recipe(tmp_path, server.url), "--out", tmp_path / "run", env=environment)
    assert server.bytes <= 1.3 * stored(large)
    assert server.most_at_once > 1
    # What was there is not asked for again, but for the beginning of a next epoch, which is not read any
    # more.
    begun, twice = set(), 0
    for path, first, end in server.ranges:
        twice += (path, first) in begun
        begun.add((path, first))
    assert len(begun) > 500 and twice <= 0.75 * LIMIT / (SIDE * SIDE * 3) + 10


@pytest.mark.parametrize("disk", ["0", "10GB"])
def test_measuring_pictures_fetches_them_once(millrace, large, serve, environment, tmp_path, disk):
    """Where a recipe has no mean and std: what is looked at comes as planned as a feed's samples do."""
    environment["MILLRACE_DATA_CACHE"] = disk
    there = serve(large)

    def measured(source, name):
        path = recipe(tmp_path, source, f"{name}.toml")
        path.write_text("".join(line for line in path.read_text().splitlines(True) if not line.startswith(("mean", "std"))))
        millrace("train", path, "train.steps=1", "--out", tmp_path / name, env=environment)
        return [line for line in (tmp_path / name / "recipe.toml").read_text().splitlines() if line.startswith(("mean", "std"))]

    assert len(measured(there.url, "there")) == 2
    # All are measured; a few more are looked at for their colours; one batch is trained on, and the feed
    # reads ahead of it: how far depends on how long the step takes.
    assert there.bytes <= stored(large) + 3 * LIMIT
    assert measured(large, "here") == measured(there.url, "again")


def test_a_disk_that_holds_the_data_gets_it_once(millrace, large, serve, environment, tmp_path):
    server = serve(large)
    environment["MILLRACE_DATA_CACHE"] = "10GB"
    millrace("train", recipe(tmp_path, server.url), "train.epochs=2", "--out", tmp_path / "run", env=environment)
    assert server.bytes <= 1.1 * stored(large)
    assert len(server.ranges) < 200
    server.clear()
    millrace("train", recipe(tmp_path, server.url), "--out", tmp_path / "again", env=environment)
    assert server.bytes <= 0.01 * stored(large)


def test_a_disk_that_holds_a_part_saves_that_part(millrace, large, serve, environment, tmp_path):
    """To remove blocks that will be read for others that will be read would save nothing."""
    environment["MILLRACE_DATA_CACHE"] = f"{stored(large) // 2}"
    server = serve(large)
    millrace("train", recipe(tmp_path, server.url), "train.epochs=3", "--out", tmp_path / "run", env=environment)
    assert server.bytes <= (0.5 + 3 * 0.5 * 1.2 + 0.1) * stored(large)
    kept = sum(path.stat().st_size for path in (tmp_path / "cache/data").rglob("*") if path.is_file())
    assert kept <= stored(large) // 2


def test_an_order_that_costs_many_requests_is_said_with_a_better_one(millrace, large, serve, environment, tmp_path):
    server = serve(large)
    told = millrace("train", recipe(tmp_path, server.url), "--out", tmp_path / "run", env=environment)
    text = told.stdout + told.stderr
    found = re.search(r'each epoch fetches ([\d.]+) MB in (\d+) requests of .*; data.order = "(block-shuffle \d+ \d+)" would fetch ([\d.]+) MB in (\d+)', text)
    assert found, text
    now, requests, order, then, fewer = float(found[1]), int(found[2]), found[3], float(found[4]), int(found[5])
    assert 0.9 <= now * 1e6 / server.bytes <= 1.1 and 0.9 <= requests / len(server.ranges) <= 1.1
    server.clear()
    told = millrace("train", recipe(tmp_path, server.url), f"data.order={order}", "--out", tmp_path / "blocks", env=environment)
    assert 0.8 <= then * 1e6 / server.bytes <= 1.2 and 0.5 <= fewer / len(server.ranges) <= 2
    assert "would fetch" not in told.stdout + told.stderr
    # Nothing is proposed where all stays.
    told = millrace("train", recipe(tmp_path, server.url), "--out", tmp_path / "disk", env={**environment, "MILLRACE_DATA_CACHE": "10GB"})
    assert "would fetch" not in told.stdout + told.stderr


def test_packed_shards_keep_the_names_of_their_classes(millrace, small, serve, environment, tmp_path):
    url = serve(small).url
    shards = f"{url}/train-{{000000..000001}}.tar"
    told = millrace("train", recipe(tmp_path, url), "train.steps=5", "--out", tmp_path / "run", env=environment)
    assert all(name in told.stdout + told.stderr for name in NAMES)
    # Here and there are one set to an evaluation, which compares names.
    here, there = (json.loads(millrace("eval", tmp_path / "run", f"{source}/train-000000.tar", "--json", env=environment).stdout) for source in (small, url))
    assert {**here, "data": 0, "seconds": 0} == {**there, "data": 0, "seconds": 0}
    millrace("train", recipe(tmp_path, small), "train.steps=5", "--out", tmp_path / "local", env=environment)
    millrace("eval", tmp_path / "local", shards, env=environment)
    # Where nobody knows them that is said, and a server that does not tell is an error.
    bare = tmp_path / "bare"
    bare.mkdir()
    for path in small.glob("train-*"):
        (bare / path.name).symlink_to(path)
    other = serve(bare)
    for source in (bare, other.url):
        told = millrace("data", "head", f"{source}/train-000000.tar", env=environment)
        assert "there is no train.json beside the shards" in told.stdout + told.stderr
    # Nor by what else they may be called.
    (tmp_path / "plain").mkdir()
    tar = (small / "train-000000.tar").read_bytes()
    (tmp_path / "plain/shard.tar").write_bytes(tar)
    told = millrace("data", "head", tmp_path / "plain/shard.tar", env=environment)
    assert "the classes have no names but their numbers: names stand in NAME.json" in told.stdout + told.stderr
    (tmp_path / "plain/train.json").write_bytes((small / "train.json").read_bytes())
    (tmp_path / "plain/train-000000.tar.gz").write_bytes(gzip.compress(tar, 1))
    classes = json.loads(millrace("data", "stat", tmp_path / "plain/train-000000.tar.gz", "--json").stdout)["sources"][0]["classes"]
    assert list(classes) == NAMES
    told = millrace("data", "head", f"{url}/train-000000.tar#part", env=environment)
    assert "no names" not in told.stdout + told.stderr
    other.fault = lambda path: 503 if path.endswith(".json") else None
    error = millrace("data", "head", f"{other.url}/train-000000.tar", code=1, env={**environment, "MILLRACE_HTTP_ATTEMPTS": "2"}).stderr
    assert "train.json: not answered after 2 attempts" in error


@pytest.mark.parametrize("verb", ["stat", "verify"])
def test_looking_at_data_stops_when_the_server_is_gone(millrace, small, serve, environment, verb):
    """It is no fault of the samples that are left, which would be listed one by one, each after all
    attempts."""
    server = serve(small)
    environment["MILLRACE_HTTP_ATTEMPTS"] = "2"
    server.when = (12, server.stop)
    told = millrace("data", verb, f"{server.url}/train-{{000000..000001}}.tar", code=1, env=environment)
    assert server.when is None and told.stderr.count("not answered after 2 attempts") == 1
    assert "is the server up and reachable?" in told.stderr and "cannot be read" not in told.stdout


def test_a_long_page_about_a_fault_is_no_fault_of_its_own(millrace, small, serve, environment, tmp_path):
    """Servers explain a 503 at length, to requests for a few bytes, too."""
    server, tried = serve(small), []
    server.fault = lambda path: tried.append(path) or (503 if len(tried) % 7 == 1 else None)
    millrace("train", recipe(tmp_path, server.url), "--out", tmp_path / "run", env=environment)


def test_a_server_that_comes_back_is_waited_for(millrace, large, serve, environment, tmp_path):
    server = serve(large)
    millrace("train", recipe(tmp_path, large, "l.toml"), "--out", tmp_path / "here", env=environment)

    def away():
        server.stop()
        threading.Timer(1.5, server.start).start()

    server.when = (500, away)
    millrace("train", recipe(tmp_path, server.url), "--out", tmp_path / "there", env=environment)
    assert server.when is None
    assert losses(tmp_path / "there") == losses(tmp_path / "here") != []
    assert server.bytes <= 1.3 * stored(large)


def test_a_run_goes_on_when_the_server_is_there_again(millrace, large, serve, environment, tmp_path):
    """All that came is trained on and saved; then the run goes on to the bits that it would have had."""
    server = serve(large)
    environment["MILLRACE_HTTP_ATTEMPTS"] = "2"
    server.when = (900, server.stop)
    told = millrace("train", recipe(tmp_path, server.url), "--out", tmp_path / "run", code=1, env=environment)
    saved = re.search(r"Everything up to step (\d+) is saved: when the data is there again, --resume goes on", told.stderr)
    assert saved and int(saved[1]) > 20 and "not answered after 2 attempts" in told.stderr, told.stderr
    # Not yet: nothing is lost by trying.
    again = millrace("train", tmp_path / "run", "--resume", code=1, env=environment)
    assert "is the server up and reachable?" in again.stderr
    server.start()
    server.clear()
    millrace("train", tmp_path / "run", "--resume", env=environment)
    left = 1 - int(saved[1]) * 8 * SIDE * SIDE * 3 / stored(large)
    assert server.bytes <= 1.3 * left * stored(large)
    millrace("train", recipe(tmp_path, large, "l.toml"), "--out", tmp_path / "here", env=environment)
    assert losses(tmp_path / "run") == losses(tmp_path / "here") != []
