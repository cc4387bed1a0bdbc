"""Data on servers: HTTP with all its faults, and S3."""

import gzip
import http.server
import io
import json
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


def recordio(path, count=40, side=32):
    """Pictures of four classes, as MXNet's im2rec writes them."""
    random = np.random.default_rng(3)
    with open(path, "wb") as file:
        for i in range(count):
            pixels = random.integers(0, 60, (side, side, 3)) + 60 * (i % 4)
            picture = io.BytesIO()
            Image.fromarray(pixels.astype(np.uint8)).save(picture, "JPEG")
            record = struct.pack("<IfQQ", 0, i % 4, i, 0) + picture.getvalue()
            file.write(struct.pack("<II", 0xCED7230A, len(record)) + record + bytes(-len(record) % 4))


class Server:
    """Serves one folder; `fault(number of the request)` may spoil answers."""

    def __init__(self, folder):
        self.folder, self.requests, self.fault, self.etag = folder, [], lambda number: None, '"1"'
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                server.answer(self)

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def answer(self, to):
        self.requests.append((to.path, to.headers.get("Range")))
        fault = self.fault(len(self.requests))
        path = self.folder / to.path.lstrip("/")
        if isinstance(fault, int):
            return self.send(to, fault, b"")
        if not path.is_file():
            return self.send(to, 404, b"")
        content = path.read_bytes()
        if to.headers.get("If-Match") not in (None, self.etag):
            return self.send(to, 412, b"")
        if fault == "whole":
            return self.send(to, 200, content)
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", to.headers["Range"]).groups())
        if first >= len(content):
            return self.send(to, 416, b"", {"Content-Range": f"bytes */{len(content)}"})
        last = min(last, len(content) - 1)
        part = content[first : last + 1]
        headers = {"Content-Range": f"bytes {first}-{last}/{len(content)}", "ETag": self.etag}
        if fault == "short":
            part = part[: len(part) // 2]
        elif fault == "cut":  # says more than it sends
            headers["Content-Length"] = str(len(part) + 1)
            to.close_connection = True
        elif fault == "wrong range":
            headers["Content-Range"] = "bytes what"
        elif fault == "stall":
            headers["Content-Length"] = str(len(part))
            self.send(to, 206, b"", headers)
            time.sleep(600)
            return None
        return self.send(to, 206, part, headers)

    def send(self, to, status, body, headers=None):
        to.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            to.send_header(name, value)
        to.end_headers()
        try:
            to.wfile.write(body)
        except ConnectionError:
            pass


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    recordio(folder / "x.rec")
    one = Server(folder)
    yield one
    one.http.shutdown()


@pytest.fixture
def environment(tmp_path):
    return {"MILLRACE_CACHE": str(tmp_path / "cache"), "MILLRACE_HTTP_ATTEMPTS": "3"}


def head(millrace, source, environment):
    return json.loads(millrace("data", "head", source, "--json", "-n", 100, env=environment).stdout)


def test_a_file_on_a_server_is_what_it_is_here(millrace, server, environment):
    here = head(millrace, server.folder / "x.rec", environment)
    assert here["samples"] == 40
    assert head(millrace, f"{server.url}/x.rec", environment) == here
    asked = len(server.requests)
    assert head(millrace, f"{server.url}/x.rec", environment) == here
    # The same still? The content is on the disk.
    assert {where for _, where in server.requests[asked:]} == {"bytes=0-0"}


def test_tables_on_a_server(millrace, server, environment):
    """Parquet through Arrow, and CSV; what goes wrong on the way comes out as what it is."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    table = pa.table({"a": list(range(5000)), "b": [f"text {i}" for i in range(5000)]})
    pa.parquet.write_table(table, server.folder / "x.parquet", row_group_size=700)
    (server.folder / "x.csv").write_text("a,b\n" + "".join(f"{i},text {i}\n" for i in range(5000)))
    for name in ("x.parquet", "x.csv"):
        read = head(millrace, f"{server.url}/{name}", environment)
        assert read["samples"] == 5000 and read["head"] == table.slice(0, 100).to_pylist()
    server.fault = lambda number: 500
    cold = {**environment, "MILLRACE_CACHE": environment["MILLRACE_CACHE"] + "2"}
    error = millrace("data", "head", f"{server.url}/x.parquet", code=1, env=cold).stderr
    assert "not answered after 3 attempts" in error


@pytest.mark.parametrize("fault", [500, 503, 429, "short", "cut"])
def test_faults_that_pass_are_overcome(millrace, server, environment, fault):
    server.fault = lambda number: fault if number in (2, 3) else None
    assert head(millrace, f"{server.url}/x.rec", environment)["samples"] == 40
    assert len([path for path, _ in server.requests if path == "/x.rec"]) == 4


@pytest.mark.parametrize(
    "fault, says",
    [
        (500, "not answered after 3 attempts (the last: status 500)"),
        ("short", "bytes instead of"),
        (403, "access is denied"),
        (404, "there is no such file; check the address"),
        ("whole", "does not serve parts of files"),
        ("wrong range", "does not say how large the file is"),
    ],
)
def test_faults_that_stay_are_named(millrace, server, environment, fault, says):
    server.fault = lambda number: fault if fault != "short" or number > 1 else None
    error = millrace("data", "head", f"{server.url}/x.rec", code=1, env=environment).stderr
    assert says in error and f"{server.url}/x.rec" in error


def test_an_empty_file_is_empty_on_a_server_too(millrace, server, environment):
    for name in ("none.csv", "none.rec"):
        (server.folder / name).write_bytes(b"")
        here = millrace("data", "head", server.folder / name, code=1).stderr
        there = millrace("data", "head", f"{server.url}/{name}", code=1, env=environment).stderr
        assert there.replace(server.url, str(server.folder)) == here


def test_a_file_that_changes_while_it_is_read_is_noticed(millrace, server, environment):
    def fault(number):
        if number == 2:
            server.etag = '"2"'

    server.fault = fault
    error = millrace("data", "head", f"{server.url}/x.rec", code=1, env=environment).stderr
    assert "has changed on the server while it was read" in error


def test_https_with_an_authority_of_ones_own(millrace, server, environment, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = shutil.which("openssl") and subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], capture_output=True)  # fmt: skip
    if not made or made.returncode:
        pytest.skip("openssl makes no certificate")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.http.socket = context.wrap_socket(server.http.socket, server_side=True)
    url = server.url.replace("http://", "https://") + "/x.rec"
    unset = {"SSL_CERT_FILE": "", "CURL_CA_BUNDLE": ""}
    error = millrace("data", "head", url, code=1, env={**environment, **unset}).stderr
    assert "its certificate is not one of an authority that is known here" in error and "SSL_CERT_FILE" in error
    assert head(millrace, url, {**environment, **unset, "SSL_CERT_FILE": str(certificate)})["samples"] == 40


def test_files_beside_a_file_on_a_server_are_found(millrace, server, environment):
    """Sizes of queries, and labels of pictures, zipped while the pictures are not."""
    (server.folder / "rank").write_text("1 1:0.5\n0 1:2\n2 1:1\n")
    (server.folder / "rank.query").write_text("2\n1\n")
    rows = head(millrace, f"{server.url}/rank", environment)["head"]
    assert [row["query"] for row in rows] == [0, 0, 1]
    pictures = np.arange(3 * 4 * 4, dtype=np.uint8)
    (server.folder / "x-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, 3, 4, 4) + pictures.tobytes())
    url = f"{server.url}/x-images-idx3-ubyte"
    assert "label" not in head(millrace, url, environment)["head"][0]
    labels = struct.pack(">II", 0x801, 3) + bytes([2, 0, 1])
    (server.folder / "x-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    assert [row["label"] for row in head(millrace, url, environment)["head"]] == [2, 0, 1]
    # Whether there are labels must be known: a server that does not tell is an error.
    server.fault = lambda number: 503 if "labels" in server.requests[-1][0] else None
    error = millrace("data", "head", url, code=1, env=environment).stderr
    assert "labels" in error and "not answered after 3 attempts" in error


@pytest.mark.parametrize("compressed", [False, True])
def test_mds_on_a_server(millrace, server, environment, compressed):
    """As Streaming uploads it: of compressed shards only the compressed ones."""
    here = server.folder / "mds"
    millrace("data", "convert", server.folder / "x.rec", here, "--format", "mds", *["--zstd"] * compressed)
    (here / "other").mkdir()
    expected = head(millrace, here, environment)
    assert expected["samples"] == 40
    url = f"{server.url}/mds/index.json"
    assert head(millrace, url, environment) == expected
    [shard] = [path for path in here.iterdir() if ".mds" in path.name]
    assert (shard.suffix == ".zstd") == compressed
    assert "40 samples" in millrace("data", "verify", url, env=environment).stdout
    shard.unlink()
    cold = {**environment, "MILLRACE_CACHE": environment["MILLRACE_CACHE"] + "2"}
    error = millrace("data", "head", url, code=1, env=cold).stderr
    assert f"{shard.name}: there is no such file" in error


def test_nobody_there(millrace, environment):
    error = millrace("data", "head", "http://127.0.0.1:9/x.rec", code=1, env=environment).stderr
    assert "is the server up and reachable?" in error


def test_secrets_in_an_address_are_not_printed(millrace, server, environment):
    url = server.url.replace("http://", "http://user:geheim@")
    error = millrace("data", "head", f"{url}/none.rec?token=geheim", code=1, env=environment).stderr
    assert "geheim" not in error and "/none.rec" in error


def test_interrupted_while_the_server_stalls(binary, server, environment):
    server.fault = lambda number: "stall" if number > 1 else None
    process = subprocess.Popen(
        [binary, "data", "head", f"{server.url}/x.rec"], env={**os.environ, **environment}, stderr=subprocess.PIPE
    )
    while len(server.requests) < 2:
        time.sleep(0.02)
    process.terminate()
    assert process.wait(timeout=120) == -signal.SIGTERM


def test_a_network_trains_on_pictures_from_a_server(millrace, server, environment, tmp_path):
    (tmp_path / "r.toml").write_text(
        f"""
[data]
train = "{server.url}/x.rec"
[model]
layers = ["conv 4 3 stride=2", "relu", "global-avg-pool", "linear 4"]
[train]
epochs = 2
batch = 8
optimizer = {{ kind = "sgd", lr = 0.1, momentum = 0.9 }}
"""
    )
    millrace("train", tmp_path / "r.toml", "--out", tmp_path / "there", env=environment)
    millrace("train", tmp_path / "r.toml", f"data.train={server.folder}/x.rec", "--out", tmp_path / "here")

    def losses(run):
        lines = map(json.loads, (tmp_path / run / "metrics.jsonl").read_text().splitlines())
        return [line["loss"] for line in lines if "loss" in line]

    assert losses("there") == losses("here") != []


def test_what_a_command_or_standard_input_gives(binary, millrace, server, tmp_path):
    path, there = server.folder / "x.rec", {"TMPDIR": str(tmp_path)}
    here = head(millrace, path, there)
    assert head(millrace, f"pipe:cat {server.folder}/x.r*", there) == here
    given = subprocess.run([binary, "data", "head", "-", "--json", "-n", "100"], stdin=path.open(), capture_output=True)
    assert json.loads(given.stdout) == here
    # Twice opened, once run; gone afterwards.
    log = tmp_path / "log"
    millrace("data", "stat", f"pipe:echo run >> {log}; cat {path}", env=there)
    assert log.read_text() == "run\n" and not list(tmp_path.glob("millrace-*"))
    failed = millrace("data", "head", f"pipe:cat {path}; exit 3", code=1, env=there).stderr
    assert "the command failed (exit status 3)" in failed
    assert "is empty" in millrace("data", "head", "pipe:true", code=1, env=there).stderr
    # A folder that nobody can make, whoever runs this.
    assert f"{__file__}/tmp: cannot create a temporary file in it" in millrace("data", "head", "pipe:true", code=1, env={"TMPDIR": f"{__file__}/tmp"}).stderr
    assert "has no index" in millrace("data", "index", f"pipe:cat {path}", code=1, env=there).stderr


def test_shards_on_a_server_with_an_index_here_or_there(millrace, binary, server, environment, tmp_path):
    subprocess.run([binary, "letters", tmp_path / "set", "--train", "100", "--test", "20"], check=True)
    subprocess.run([binary, "pack", tmp_path / "set", server.folder, "--shard-samples", "60"], check=True)
    url = f"{server.url}/train-{{000000..000001}}.tar"
    here = head(millrace, server.folder / "train-{000000..000001}.tar", environment)
    assert here["samples"] == 100 and head(millrace, url, environment) == here

    def found(source):
        return json.loads(millrace("data", "query", source, "label in (1, 2)", "--json", env=environment).stdout)["indices"]

    rows = found(url)
    # An index of one's own, in the cache: the tar changes on the server, and it is no longer used.
    made = millrace("data", "index", url, env=environment).stdout
    assert "60 samples" in made and str(tmp_path / "cache/index") in made
    assert found(url) == rows and head(millrace, url, environment) == here
    server.etag = '"2"'
    assert "has changed since this index was made" in millrace("data", "head", url, env=environment).stderr
    # The server's.
    shutil.rmtree(tmp_path / "cache")
    for number in (0, 1):
        millrace("data", "index", server.folder / f"train-{number:06}.tar", env=environment)
    server.requests.clear()
    assert found(url) == rows and head(millrace, url, environment) == here
    assert "/train-000001.tar.mrx" in {path for path, _ in server.requests}


@pytest.fixture(scope="module")
def s3(binary, tmp_path_factory):
    """An S3 server (moto) that checks rights and signatures, with one bucket and one user."""
    boto3 = pytest.importorskip("boto3")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [Path(sys.executable).with_name("moto_server"), "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "MOTO_S3_DEFAULT_MAX_KEYS": "3"},  # so that short lists come in parts
    )
    for _ in range(600):
        try:
            urllib.request.urlopen(url).close()
            break
        except OSError:
            assert process.poll() is None
            time.sleep(0.1)
    access = {"endpoint_url": url, "region_name": "eu-west-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}
    iam = boto3.client("iam", **access)
    iam.create_user(UserName="reader")
    rights = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    iam.put_user_policy(
        UserName="reader", PolicyName="all", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [rights]})
    )
    key = iam.create_access_key(UserName="reader")["AccessKey"]
    bucket = boto3.client("s3", **access)
    bucket.create_bucket(Bucket="pictures", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    path = tmp_path_factory.mktemp("s3") / "x.rec"
    recordio(path)
    bucket.put_object(Bucket="pictures", Key="deep/one & ü+.rec", Body=path.read_bytes())
    for name in ("a&b-0", "a&b-1", "ä b-1", "a&b-2", "a&b-10", "c-<1>"):
        bucket.put_object(Bucket="pictures", Key=f"set/{name}.rec", Body=path.read_bytes())
    for name in ("set/a&b-0.idx", "set/a&b-0.rec.mrx.old", "set/below/a&b-3.rec", "set/.hidden.rec", "tars/x.txt"):
        bucket.put_object(Bucket="pictures", Key=name, Body=b"x")
    mds = path.with_name("mds")
    subprocess.run([binary, "data", "convert", path, mds, "--format", "mds"], check=True, capture_output=True)
    for part in mds.iterdir():
        bucket.put_object(Bucket="pictures", Key=f"mosaic/{part.name}", Body=part.read_bytes())
    bucket.put_object(Bucket="pictures", Key="mosaic/below/index.json", Body=b"x")
    # From now on every request must be signed rightly.
    check = urllib.request.Request(
        f"{url}/moto-api/reset-auth", data=b"0", method="POST", headers={"Content-Type": "text/plain"}
    )
    urllib.request.urlopen(check).close()
    yield {
        "path": path,
        "AWS_ENDPOINT_URL": url,
        "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
    }
    process.kill()
    process.wait()


def test_s3(millrace, s3, environment):
    access = {**environment, **{name: value for name, value in s3.items() if name.startswith("AWS_")}}
    assert head(millrace, "s3://pictures/deep/one & ü+.rec", access) == head(millrace, s3["path"], environment)
    wrong = {**access, "AWS_SECRET_ACCESS_KEY": "wrong"}
    assert "access is denied" in millrace("data", "head", "s3://pictures/deep/one & ü+.rec", code=1, env=wrong).stderr
    assert "no such file" in millrace("data", "head", "s3://pictures/none.rec", code=1, env=access).stderr
    assert "s3://BUCKET/KEY" in millrace("data", "head", "s3://pictures", code=1, env=access).stderr


def test_patterns_on_s3(millrace, s3, environment):
    access = {**environment, **{name: value for name, value in s3.items() if name.startswith("AWS_")}}

    def samples(pattern):
        return head(millrace, f"s3://pictures/{pattern}", access)["samples"] // 40

    assert samples("set/a&b-*.rec") == 4  # over several answers
    assert samples("set/a&b-?.rec") == 3
    assert samples("set/{a&b-[12],ä b-1}.rec") == 3
    assert samples("set/c-<*>.rec") == 1
    assert samples("s*/*-1.rec") == 2
    names = millrace("data", "query", "s3://pictures/set/a&b-*.rec", "id = 0", env=access).stdout.splitlines()
    assert [line.split("\t")[1].split(",")[0] for line in names] == [
        f"s3://pictures/set/a&b-{n}.rec" for n in (0, 1, 10, 2)
    ]

    def refusal(pattern, **more):
        return millrace("data", "head", f"s3://{pattern}", code=1, env={**access, **more}).stderr

    assert "matches no file" in refusal("pictures/set/z*.rec")
    assert "no such bucket" in refusal("nothing/z*.rec")
    assert "listing is denied" in refusal("pictures/set/a*.rec", AWS_SECRET_ACCESS_KEY="wrong")
    # A folder: all files in it but hidden ones and sidecars; one is of another format here.
    assert "a&b-0.rec.mrx.old" in refusal("pictures/set/")
    assert head(millrace, "s3://pictures/tars/", access)["samples"] == 1
    assert head(millrace, "s3://pictures/mosaic/", access)["samples"] == 40


class Hdfs:
    """A name node and a data node that serve one folder by WebHDFS."""

    def __init__(self, folder):
        self.folder, self.requests, node = folder, [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                node.answer(self)

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.address = f"127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def answer(self, to):
        url = urllib.parse.urlsplit(to.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        self.requests.append(query)
        data_node = url.path.startswith("/data")
        path = self.folder / urllib.parse.unquote(url.path).removeprefix("/data").removeprefix("/webhdfs/v1/")
        if query.get("user.name") == "nobody":
            return self.send(to, 403, {"RemoteException": {"exception": "AccessControlException"}})
        if not path.exists():
            return self.send(to, 404, {"RemoteException": {"exception": "FileNotFoundException"}})

        def status(of):
            kind = "FILE" if of.is_file() else "DIRECTORY"
            return {"length": of.stat().st_size, "modificationTime": 7, "type": kind, "pathSuffix": of.name}

        if query["op"] == "GETFILESTATUS":
            return self.send(to, 200, {"FileStatus": {**status(path), "pathSuffix": ""}})
        if query["op"] == "LISTSTATUS":
            return self.send(to, 200, {"FileStatuses": {"FileStatus": [status(of) for of in path.iterdir()]}})
        assert query["op"] == "OPEN"
        if not data_node:
            return self.send(to, 307, None, {"Location": f"http://{self.address}/data{to.path}"})
        first = int(query["offset"])
        return self.send(to, 200, path.read_bytes()[first : first + int(query["length"])])

    def send(self, to, status, body, headers=None):
        body = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        to.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            to.send_header(name, value)
        to.end_headers()
        to.wfile.write(body)


@pytest.fixture
def hdfs(tmp_path):
    folder = tmp_path / "hdfs"
    (folder / "deep").mkdir(parents=True)
    for name in ("x-0", "x-1", "deep/y & ü"):
        recordio(folder / f"{name}.rec")
    (folder / "_SUCCESS").touch()
    one = Hdfs(folder)
    yield one
    one.http.shutdown()


def test_hdfs_by_webhdfs(millrace, hdfs, environment):
    environment = {**environment, "HADOOP_USER_NAME": "ann"}
    here = head(millrace, hdfs.folder / "x-0.rec", environment)
    assert head(millrace, f"webhdfs://{hdfs.address}/x-0.rec", environment) == here
    assert head(millrace, f"webhdfs://{hdfs.address}/deep/y & ü.rec", environment) == here
    assert {query["user.name"] for query in hdfs.requests} == {"ann"}
    assert {query["op"] for query in hdfs.requests} == {"GETFILESTATUS", "OPEN"}
    for pattern in ("x-*.rec", "x-{0..1}.rec", ""):
        assert head(millrace, f"webhdfs://{hdfs.address}/{pattern}", environment)["samples"] == 80
    at = {**environment, "MILLRACE_WEBHDFS": f"http://{hdfs.address}/"}
    assert head(millrace, "hdfs://namenode:8020/x-0.rec", at) == here
    assert head(millrace, "hdfs:///x-0.rec", at) == here


def test_a_server_is_asked_once_what_a_pattern_names(millrace, hdfs, environment):
    for number in (0, 1):
        (hdfs.folder / f"t-{number}.csv").write_text("n,t\n1,a\n2,b\n")
    for verb in (["head"], ["stat"], ["query", "n = 1"]):
        del hdfs.requests[:]
        millrace("data", verb[0], f"webhdfs://{hdfs.address}/t-*.csv", *verb[1:], env=environment)
        assert [query["op"] for query in hdfs.requests].count("LISTSTATUS") == 1, verb


def test_hdfs_that_cannot_be_read_says_why(millrace, hdfs, environment):
    def refusal(path, **more):
        return millrace("data", "head", path, code=1, env={**environment, **more}).stderr

    assert "write webhdfs://HOST:9870/x.rec" in refusal("hdfs://namenode:8020/x.rec")
    assert "no such file" in refusal(f"webhdfs://{hdfs.address}/none.rec")
    assert "access is denied" in refusal(f"webhdfs://{hdfs.address}/x-0.rec", HADOOP_USER_NAME="nobody")
    assert "is a folder" in refusal(f"webhdfs://{hdfs.address}/deep")
    assert "in the last part" in refusal(f"webhdfs://{hdfs.address}/d*/x.rec")
    assert "matches no file" in refusal(f"webhdfs://{hdfs.address}/z*.rec")
