"""What a training writes down: databases of runs, MLflow's server, and that all logs are whole whatever
happens."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from test_train import assert_same_run, letters, metric_lines, recipe, start, wait_for_step  # noqa: F401


def rows(path, sql, *values):
    with sqlite3.connect(path) as base:
        return base.execute(sql, values).fetchall()


def test_a_database_has_the_runs_their_recipes_and_curves(recipe, millrace, tmp_path):
    base = tmp_path / "all.sqlite"
    log = f"train.log=[sqlite {base}]"
    for name, lr in (("one", 0.05), ("two", 0.1)):
        millrace("train", recipe, log, f"train.optimizer.lr={lr}", "--out", tmp_path / name)
    runs = dict((path, (id, state)) for id, path, state in rows(base, "SELECT id, path, state FROM runs"))
    assert set(runs) == {str(tmp_path / "one"), str(tmp_path / "two")} and {state for _, state in runs.values()} == {"finished"}
    rates = rows(base, "SELECT path, value FROM runs JOIN params ON run = id WHERE key = 'train.optimizer.lr' ORDER BY path")
    assert rates == [(str(tmp_path / "one"), "0.05"), (str(tmp_path / "two"), "0.1")]
    epochs = [line for line in metric_lines(tmp_path / "one") if "test/accuracy" in line]
    stored = rows(base, "SELECT step, value FROM metrics WHERE run = ? AND name = 'test/accuracy' ORDER BY step", runs[str(tmp_path / "one")][0])
    assert stored == [(line["step"], line["test/accuracy"]) for line in epochs] and len(stored) == 3
    steps = {line["step"]: line["loss"] for line in metric_lines(tmp_path / "one") if "lr" in line}
    losses = rows(base, "SELECT step, value FROM metrics WHERE run = ? AND name = 'train/loss'", runs[str(tmp_path / "one")][0])
    assert losses and all(steps[step] == value for step, value in losses)


def test_what_a_resumed_run_left_behind_is_forgotten(recipe, millrace, binary, tmp_path):
    base, log = tmp_path / "all.sqlite", f"train.log=[sqlite {tmp_path}/all.sqlite]"
    process = start(binary, "train", recipe, "train.epochs=60", log, "--out", tmp_path / "run")
    wait_for_step(process, tmp_path / "run", 60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert rows(base, "SELECT state FROM runs") == [("running",)]
    millrace("train", tmp_path / "run", "--resume")
    ((state,),) = rows(base, "SELECT state FROM runs")
    lines = [line for line in metric_lines(tmp_path / "run") if "test/accuracy" in line]
    assert state == "finished" and len(lines) == 60
    stored = rows(base, "SELECT step, value FROM metrics WHERE name = 'test/accuracy' ORDER BY step")
    assert stored == [(line["step"], line["test/accuracy"]) for line in lines]


def test_two_trainings_share_a_database(recipe, binary, tmp_path):
    base = tmp_path / "all.sqlite"
    both = [start(binary, "train", recipe, "train.epochs=20", f"train.log=[sqlite {base}]", "--out", tmp_path / name) for name in "ab"]
    for process in both:
        text = process.communicate(timeout=120)[0]
        assert process.returncode == 0, text
    assert rows(base, "SELECT count(*) FROM metrics WHERE name = 'test/accuracy'") == [(40,)]


def test_a_database_that_others_lock_stops_no_training(recipe, binary, tmp_path):
    base = tmp_path / "all.sqlite"
    process = start(binary, "train", recipe, "train.epochs=60", f"train.log=[sqlite {base}]", "--out", tmp_path / "run")
    wait_for_step(process, tmp_path / "run", 60)
    other = sqlite3.connect(base, isolation_level=None, timeout=60)
    other.execute("BEGIN IMMEDIATE")
    while (line := process.stdout.readline()) and "training goes on, and what is missing there is written later" not in line:
        pass
    assert "all.sqlite: cannot write the database of runs: database is locked (training goes on" in line
    other.execute("ROLLBACK")
    text = process.communicate(timeout=120)[0]
    assert process.returncode == 0 and "points are not there" not in text, text
    lines = [line for line in metric_lines(tmp_path / "run") if "test/accuracy" in line]
    assert rows(base, "SELECT state FROM runs") == [("finished",)] and len(lines) == 60
    assert rows(base, "SELECT step, value FROM metrics WHERE name = 'test/accuracy' ORDER BY step") == [(line["step"], line["test/accuracy"]) for line in lines]


def test_a_run_that_goes_on_may_be_told_other_logs(recipe, millrace, tmp_path):
    millrace("train", recipe, "train.epochs=2", f"train.log=[sqlite {tmp_path}/one.sqlite]", "--out", tmp_path / "run")
    (tmp_path / "one.sqlite").write_text("a text, and no database" * 100)
    said = millrace("train", tmp_path / "run", "--resume", "train.epochs=3", code=1).stderr
    assert "is no SQLite database; choose another file in train.log" in said
    millrace("train", tmp_path / "run", "--resume", "train.epochs=3", f"train.log=[sqlite {tmp_path}/two.sqlite]")
    millrace("train", tmp_path / "run", "--resume", "train.epochs=4")
    epochs = [line for line in metric_lines(tmp_path / "run") if "test/accuracy" in line]
    stored = rows(tmp_path / "two.sqlite", "SELECT step, value FROM metrics WHERE name = 'test/accuracy' ORDER BY step")
    assert stored == [(line["step"], line["test/accuracy"]) for line in epochs[2:]] and len(stored) == 2


def test_a_database_that_is_damaged_is_named(recipe, millrace, tmp_path):
    base = tmp_path / "all.sqlite"
    millrace("train", recipe, f"train.log=[sqlite {base}]", "--out", tmp_path / "one")
    content = bytearray(base.read_bytes())
    content[4096:] = b"\x5a" * (len(content) - 4096)
    base.write_bytes(content)
    said = millrace("train", recipe, f"train.log=[sqlite {base}]", "--out", tmp_path / "two", code=1).stderr
    assert "all.sqlite: the database of runs is damaged" in said and "choose another file in train.log" in said


def test_logs_that_are_none_are_refused_before_training(recipe, millrace, tmp_path):
    def refused(*changes):
        return millrace("train", recipe, *changes, "--out", tmp_path / "run", code=1).stderr

    assert "there is no log 'sqlit' (did you mean 'sqlite'?)" in refused("train.log=[sqlit x]") or "sqlite" in refused("train.log=[sqlit x]")
    assert 'train.log: log "sqlite": FILE is missing; write it as sqlite FILE' in refused("train.log=[sqlite]")
    assert "train.log: mlflow wants the address" in refused("train.log=[mlflow here]")
    assert not (tmp_path / "run").exists()
    (tmp_path / "no.sqlite").write_text("a text, and no database" * 100)
    assert "is no SQLite database" in refused(f"train.log=[sqlite {tmp_path}/no.sqlite]")


# ---- MLflow


class Server(ThreadingHTTPServer):
    """As much of MLflow's interface as is used, with its limits."""

    def __init__(self):
        self.runs, self.away, self.refuses = {}, False, ""
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, code, body):
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.answer(200, {"experiment": {"experiment_id": "7"}})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.away:
            return self.answer(503, {"message": "away"})
        verb = self.path.removeprefix("/api/2.0/mlflow/")
        if verb == "experiments/create":
            if self.server.runs:
                return self.answer(400, {"error_code": "RESOURCE_ALREADY_EXISTS", "message": "it is there"})
            return self.answer(200, {"experiment_id": "7"})
        if verb == "runs/create":
            assert body["experiment_id"] == "7"
            self.server.runs[f"r{len(self.server.runs)}"] = {"params": {}, "metrics": [], "status": "RUNNING"}
            return self.answer(200, {"run": {"info": {"run_id": f"r{len(self.server.runs) - 1}"}}})
        run = self.server.runs[body["run_id"]]
        if verb == "runs/update":
            run["status"] = body["status"]
        else:
            assert len(body.get("metrics", [])) <= 1000 and len(body.get("params", [])) <= 100
            assert all(re.fullmatch(r"[\w/.\- :]+", each["key"], re.ASCII) for kind in ("metrics", "params") for each in body.get(kind, []))
            if self.server.refuses in [each["key"] for each in body.get("metrics", [])]:
                return self.answer(400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "a strange point"})
            run["metrics"] += body.get("metrics", [])
            run["params"].update({each["key"]: each["value"] for each in body.get("params", [])})
        self.answer(200, {})


@pytest.fixture
def server():
    with Server() as made:
        yield made
        made.shutdown()


def curve(run, key):
    return [(each["step"], each["value"]) for each in run["metrics"] if each["key"] == key]


def test_mlflow_gets_parameters_and_curves(recipe, millrace, server, tmp_path):
    log = f"train.log=[mlflow {server.url} letters]"
    for name in ("one", "two"):
        millrace("train", recipe, log, "--out", tmp_path / name)
    assert [run["status"] for run in server.runs.values()] == ["FINISHED", "FINISHED"]
    run = server.runs["r0"]
    assert run["params"]["train.batch"] == "20" and len(run["params"]) > 40
    lines = [line for line in metric_lines(tmp_path / "one") if "test/accuracy" in line]
    assert curve(run, "test/accuracy") == [(line["step"], line["test/accuracy"]) for line in lines]
    assert curve(run, "train/loss")
    # A run that goes on is the same run there.
    millrace("train", tmp_path / "one", "--resume", "train.epochs=4")
    assert len(server.runs) == 2 and len(curve(server.runs["r0"], "test/accuracy")) == 4


def test_a_server_that_goes_away_stops_no_training(recipe, binary, millrace, server, tmp_path):
    millrace("train", recipe, "train.epochs=30", "--out", tmp_path / "whole")
    process = start(binary, "train", recipe, "train.epochs=30", f"train.log=[mlflow {server.url}]", "--out", tmp_path / "run")
    wait_for_step(process, tmp_path / "run", 60)
    server.away = True
    text = process.communicate(timeout=120)[0]
    assert process.returncode == 0, text
    assert "points are not there, but all are in metrics.jsonl" in text
    assert_same_run(tmp_path / "whole", tmp_path / "run")
    # Nobody is there when it goes on, and at the beginning.
    server.shutdown()
    server.server_close()
    said = millrace("train", tmp_path / "run", "--resume", "train.epochs=31").stdout
    assert "not answered after 1 attempts" in said and "does not answer" in said
    millrace("train", tmp_path / "run", "--resume", "train.epochs=32", "train.log=[]")
    said = millrace("train", recipe, f"train.log=[mlflow {server.url}]", "--out", tmp_path / "none", code=1, env={"MILLRACE_HTTP_ATTEMPTS": "2"}).stderr
    assert "not answered after 2 attempts" in said


def test_points_that_the_server_refuses_hold_up_no_others(recipe, millrace, server, tmp_path):
    server.refuses = "test/top-5"
    said = millrace("train", recipe, "train.epochs=20", "train.checkpoint_steps=1", f"train.log=[mlflow {server.url}]", "--out", tmp_path / "run").stdout
    assert "refuses runs/log-batch: a strange point (training goes on without these points)" in said
    assert re.search(r"has refused some; \d+ points are not there, but all are in metrics.jsonl", said)
    assert server.runs["r0"]["status"] == "FINISHED"


def test_the_real_mlflow_server(recipe, millrace, tmp_path):
    mlflow = shutil.which("mlflow")
    if not mlflow:
        pytest.skip("mlflow is not installed")
    port = 5000 + hash(str(tmp_path)) % 20000
    process = subprocess.Popen([mlflow, "server", "--backend-store-uri", f"sqlite:///{tmp_path}/m.db", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(120):
            if subprocess.run(["curl", "-sf", f"{url}/health"], capture_output=True).returncode == 0:
                break
            time.sleep(0.5)
        millrace("train", recipe, f"train.log=[mlflow {url} letters]", "--out", tmp_path / "run")
        with sqlite3.connect(tmp_path / "m.db") as base:
            stored = base.execute("SELECT step, value FROM metrics WHERE key = 'test/accuracy' ORDER BY step").fetchall()
            (status,) = base.execute("SELECT status FROM runs").fetchone()
        lines = [line for line in metric_lines(tmp_path / "run") if "test/accuracy" in line]
        assert stored == [(line["step"], line["test/accuracy"]) for line in lines] and status == "FINISHED"
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # what it runs beside itself ends by no gentler one
        process.wait()
