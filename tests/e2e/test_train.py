"""Training from the outside: what a run folder holds, who can read it, resuming, and bad input."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tarfile
import time

import numpy as np
import onnxruntime
import pytest
from PIL import Image
from safetensors import safe_open

RECIPE = """
[data]
train = "{letters}/train"
test = "{letters}/test"

[input]
augment = ["random-shift 2", "rotate 10"]

[model]
layers = ["conv 8 3 stride=2", "batch-norm", "relu", "max-pool 2", "flatten", "dropout 0.1", "linear 10"]

[train]
epochs = 3
batch = 20
optimizer = {{ kind = "sgd", lr = 0.05, momentum = 0.9, nesterov = true, weight_decay = 1e-4 }}
schedule = {{ kind = "cosine", warmup = 0.2 }}
lookahead = 4
freeze = ["0 1.4", "6.bias 2"]
checkpoint_steps = 7
clip_norm = 5

[eval]
metrics = ["accuracy", "log-loss", "top-5", "ece"]
batch = 30
"""


@pytest.fixture(scope="session")
def letters(binary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "letters"
    subprocess.run([binary, "letters", folder, "--train", "500", "--test", "100"], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def recipe(letters, tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    path.write_text(RECIPE.format(letters=letters))
    return path


@pytest.fixture(scope="session")
def whole(binary, recipe, tmp_path_factory):
    """An uninterrupted run."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    result = subprocess.run([binary, "train", recipe, "--out", out], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return out


LONG = "train.epochs=200"  # long enough not to be over before a signal comes


@pytest.fixture(scope="session")
def long_whole(binary, recipe, tmp_path_factory):
    """An uninterrupted run of LONG."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    result = subprocess.run([binary, "train", recipe, LONG, "--out", out], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return out


def whole_lines(path):
    """Lines of JSON. Of a file that is being written, the last may be half there."""
    return [json.loads(line) for line in path.read_text().rpartition("\n")[0].splitlines()]


def metric_lines(run):
    lines = whole_lines(run / "metrics.jsonl")
    for line in lines:
        for key in [key for key in line if key.startswith(("seconds", "system/"))]:
            line.pop(key)
    return lines


def assert_same_run(a, b):
    assert metric_lines(a) == metric_lines(b)
    newest = sorted(p.name for p in (a / "checkpoints").iterdir())[-1]
    with safe_open(a / "checkpoints" / newest, "np") as x, safe_open(b / "checkpoints" / newest, "np") as y:
        assert set(x.keys()) == set(y.keys())
        for name in x.keys():
            assert x.get_tensor(name).tobytes() == y.get_tensor(name).tobytes(), name
    assert (a / "model.onnx").read_bytes() == (b / "model.onnx").read_bytes()


def steps_logged(run):
    path = run / "metrics.jsonl"
    return path.read_text().count('"lr"') if path.exists() else 0


def start(binary, *arguments):
    return subprocess.Popen([binary, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_step(process, run, step, limit=120):
    end = time.monotonic() + limit
    while steps_logged(run) < step:
        assert process.poll() is None and time.monotonic() < end, process.communicate()[0]
        time.sleep(0.002)


def test_a_run_folder_holds_what_it_promises(whole, millrace):
    assert {"recipe.toml", "metrics.jsonl", "checkpoints", "model.onnx"} <= {p.name for p in whole.iterdir()}
    lines = metric_lines(whole)
    assert [line["step"] for line in lines if "lr" in line] == list(range(1, 76))
    epochs = [line for line in lines if "test/accuracy" in line]
    assert [line["epoch"] for line in epochs] == [1, 2, 3]
    assert epochs[-1]["train/loss"] < epochs[0]["train/loss"]
    result = json.loads(millrace("eval", whole, "--json").stdout)
    for name in ("accuracy", "log-loss", "top-5", "ece"):
        assert result[name] == epochs[-1]["test/" + name]
        low, high = result["intervals"][name]
        assert low <= result[name] <= high and high - low < 1
    assert result["targets"] == 100
    for of_class in (one for report in result["classes"] for one in report["each"]):
        for name in ("precision", "recall"):
            assert all(end is None or 0 <= end <= 1 for end in of_class[name]["interval"])


def test_tensorboard_reads_the_events(whole):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(whole))
    events.Reload()
    losses = [(e.step, e.value) for e in events.Scalars("train/loss")]
    expected = [(line["step"], np.float32(line["loss"])) for line in metric_lines(whole) if "lr" in line]
    assert losses == expected
    assert [e.step for e in events.Scalars("test/accuracy")] == [25, 50, 75]


def test_safetensors_reads_the_checkpoint(whole):
    path = sorted((whole / "checkpoints").iterdir())[-1]
    with safe_open(path, "np") as f:
        assert f.get_tensor("model.0.weight").shape == (8, 1, 3, 3)
        assert f.get_tensor("model.6.weight").dtype == np.float32
        assert any(name.startswith("optimizer.") for name in f.keys())
        assert f.metadata()["format"] == "millrace-checkpoint"


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_onnx_runtime_gives_the_same_logits(whole, recipe, letters, millrace, tmp_path, precision):
    if precision == "bf16":
        millrace("train", recipe, "train.precision=bf16", "train.epochs=1", "--out", tmp_path / "bf16")
        whole = tmp_path / "bf16"
    millrace("export", whole, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").read_bytes() == (whole / "model.onnx").read_bytes()
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    pictures = sorted(letters.glob("test/*/*.jpg"))[::7]
    batch = np.stack([np.asarray(Image.open(p))[None] for p in pictures])
    logits = session.run(["logits"], {"pictures": batch})[0]
    lines = millrace("predict", whole, "--json", *pictures).stdout.splitlines()
    assert len(lines) == len(pictures)
    classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
    # Predictions are made in the recipe's precision; ONNX Runtime computes in f32.
    close = 1e-4 if precision == "fp32" else 0.05
    for line, row in zip(map(json.loads, lines), logits):
        assert np.abs(np.array(line["logits"]) - row).max() <= close
        assert row[classes.index(line["class"])] >= row.max() - 2 * close


def test_an_exported_model_may_take_pictures_of_another_size(whole, letters, millrace, tmp_path):
    millrace("export", whole, tmp_path / "m.onnx", "--pictures", "45x70")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    lines, rows = [], []
    for i, path in enumerate(sorted(letters.glob("test/*/*.jpg"))[::40]):
        large = Image.open(path).resize((70, 45), Image.BICUBIC)
        large.save(tmp_path / f"{i}.png")
        lines += millrace("predict", whole, "--json", tmp_path / f"{i}.png").stdout.splitlines()
        rows.append(session.run(["logits"], {"pictures": np.asarray(large)[None, None]})[0][0])
    assert len(rows) > 2
    for line, row in zip(map(json.loads, lines), rows):
        # ONNX leaves the rounding of resized pixels open.
        assert np.abs(np.array(line["logits"]) - row).max() <= 0.05
    refused = millrace("export", whole, tmp_path / "n.onnx", "--pictures", "45", code=1)
    assert "HEIGHTxWIDTH" in refused.stderr


def test_frozen_parameters_stay_as_they_were(recipe, millrace, tmp_path):
    def weights(epochs):
        run = tmp_path / f"{epochs}"
        # A constant rate: with a schedule the first epochs would depend on how many follow.
        millrace("train", recipe, f"train.epochs={epochs}", "train.schedule=constant", "train.lookahead=0", "--out", run)
        with safe_open(sorted((run / "checkpoints").iterdir())[-1], "np") as f:
            return {name: f.get_tensor(name) for name in f.keys() if name.startswith("model.")}

    two, three = weights(2), weights(3)
    for name in two:
        frozen = name in ("model.0.weight", "model.0.bias", "model.6.bias")
        assert np.array_equal(two[name], three[name]) == frozen, name


def test_the_written_recipe_reproduces_the_run(whole, millrace, tmp_path):
    millrace("train", whole / "recipe.toml", "--out", tmp_path / "again")
    assert_same_run(whole, tmp_path / "again")


def test_threads_do_not_change_results(whole, recipe, millrace, tmp_path):
    millrace("train", recipe, "--threads", 3, "--out", tmp_path / "threads")
    assert_same_run(whole, tmp_path / "threads")


@pytest.mark.parametrize("kills, changes", [([3], []), ([10, 30, 31, 60], []), ([10, 30], ["train.accumulate=2"])])
def test_a_killed_and_resumed_run_equals_the_uninterrupted_one(binary, recipe, millrace, tmp_path, kills, changes):
    changes = ["train.epochs=20", *changes]  # many more steps than until the last kill, which may come late
    whole, run = tmp_path / "whole", tmp_path / "run"
    millrace("train", recipe, *changes, "--out", whole)
    epochs = [line for line in metric_lines(whole) if "test/accuracy" in line]
    assert epochs[-1]["train/loss"] < epochs[0]["train/loss"]
    for number, step in enumerate(kills):
        process = start(binary, "train", *([recipe, *changes, "--out", run] if number == 0 else [run, "--resume"]))
        wait_for_step(process, run, step)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert steps_logged(run) < steps_logged(whole)
    millrace("train", run, "--resume")
    assert_same_run(whole, run)


def test_a_step_in_parts_can_be_verified(recipe, millrace, tmp_path):
    for name, verify in (("plain", 0), ("verified", 2)):
        millrace("train", recipe, "train.steps=5", "train.accumulate=2", f"train.verify={verify}", "--out", tmp_path / name)
    assert_same_run(tmp_path / "plain", tmp_path / "verified")


def test_ctrl_c_saves_and_says_how_to_go_on(binary, recipe, long_whole, millrace, tmp_path):
    run = tmp_path / "run"
    process = start(binary, "train", recipe, LONG, "--out", run)
    wait_for_step(process, run, 8)
    process.send_signal(signal.SIGINT)
    text = process.communicate(timeout=60)[0]
    assert process.returncode == 130
    assert f"millrace train {run} --resume" in text
    millrace("train", recipe, LONG, "--out", run, "--resume")
    assert_same_run(long_whole, run)


def test_a_damaged_checkpoint_is_passed_over(whole, millrace, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    newest = sorted((run / "checkpoints").iterdir())[-1]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    text = millrace("train", run, "--resume").stdout
    assert "damaged checkpoint passed over" in text and newest.name in text
    assert_same_run(whole, run)


def test_a_full_disk_leaves_the_old_checkpoint(binary, recipe, tmp_path):
    run = tmp_path / "run"
    probe = subprocess.run([binary, "train", recipe, "train.steps=1", "--out", tmp_path / "probe"], capture_output=True)
    assert probe.returncode == 0
    largest = max(p.stat().st_size for p in (tmp_path / "probe/checkpoints").iterdir())

    def limited():
        # As in a shell; Python ignores it, and children inherit that.
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest - 100, largest - 100))

    subprocess.run([binary, "train", recipe, "train.steps=7", "--out", run], check=True, capture_output=True)
    kept = {p.name: p.read_bytes() for p in (run / "checkpoints").iterdir()}
    text = (run / "recipe.toml").read_text()
    (run / "recipe.toml").write_text(text.replace("steps = 7\n", "steps = 20\n", 1))
    result = subprocess.run([binary, "train", run, "--resume"], capture_output=True, text=True, preexec_fn=limited)
    assert result.returncode == 1
    assert "step-00000007.safetensors is intact" in result.stderr
    assert {p.name: p.read_bytes() for p in (run / "checkpoints").iterdir()} == kept


@pytest.fixture
def disk(tmp_path):
    """A file system of its own, of a size that can be changed: disk(kilobytes) → the folder. Needs to be
    root."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def resize(kilobytes):
        how = "remount," if os.path.ismount(folder) else ""
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"{how}size={kilobytes}k", "tmpfs", folder],
                                 capture_output=True, text=True)
        if mounted.returncode:
            pytest.skip(f"no file system of its own can be mounted here: {mounted.stderr.strip()}")
        return folder

    yield resize
    if os.path.ismount(folder):
        subprocess.run(["umount", folder], check=True)


def test_a_training_on_a_full_disk_ends_with_one_message_and_resumes(binary, recipe, whole, disk):
    """At whatever file the space ends: recipe, logs, checkpoints, model. With more space it goes on, to the
    same end."""
    run = disk(4) / "run"
    failed = []

    def train(kilobytes):
        disk(kilobytes)
        before = sorted((run / "checkpoints").glob("*.safetensors"))
        begun = (run / "recipe.toml").exists()
        result = subprocess.run([binary, "train", *([run, "--resume"] if begun else [recipe, "--out", run])],
                                capture_output=True, text=True, timeout=600)
        if result.returncode == 0:
            return True
        assert result.returncode == 1, result.stderr
        assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1, result.stderr
        assert "disk full" in result.stderr and "defect" not in result.stderr, result.stderr
        kept = sorted((run / "checkpoints").glob("*.safetensors"))
        assert kept or not before
        for path in kept:
            with safe_open(path, "np") as f:
                assert f.metadata()["format"] == "millrace-checkpoint"
        if kept:
            assert f"{kept[-1]} is intact: --resume goes on from there" in result.stderr
        failed.append(result.stderr)
        return False

    size = 4
    ballast = disk(size) / "ballast"
    ballast.write_bytes(bytes(4096))
    assert not train(size)
    ballast.unlink()
    while not train(size):
        size += 4
    assert_same_run(whole, run)

    (run / "model.onnx").unlink()
    used = shutil.disk_usage(run).used // 1024
    # The metrics are rewritten when a run is resumed, and fit; the model does not.
    assert not train(used + (whole / "metrics.jsonl").stat().st_size // 1024 + 8)
    # Both logs are written in turns by one thread: which of them takes the last block is a matter of luck.
    for part in ("recipe.toml", "metrics.jsonl|events.out.tfevents", "checkpoint of step", "model.onnx"):
        assert any(re.search(part, text) for text in failed), (part, failed)
    assert train(size)
    assert_same_run(whole, run)


def test_a_loss_that_is_not_finite_names_the_operation(millrace, recipe, tmp_path):
    text = millrace("train", recipe, "train.optimizer.lr=1e17", "train.clip_norm=0", "train.schedule=constant",
                    "train.lookahead=0", "--out", tmp_path / "run", code=1).stderr
    assert "the loss of step" in text and "values" in text and "train.optimizer.lr" in text
    assert "defect" not in text


def test_bad_recipes_have_one_clear_message(millrace, recipe, letters, tmp_path):
    def error(*arguments):
        text = millrace("train", recipe, *arguments, "--out", tmp_path / "never", code=1).stderr
        assert text.startswith("error: ") and "defect" not in text, text
        assert not (tmp_path / "never").exists()
        return text

    assert "did you mean 'train.epochs'" in error("train.epocs=3")
    assert "did you mean 'convnet'" in error("model={kind=convnat}")
    assert "conv 8 3 stroud=2" in error("model={layers=[conv 8 3 stroud=2]}")
    assert "linear" in error("model={layers=[conv 8 3, linear 10]}")
    assert "10 classes" in error("model={layers=[flatten, linear 7]}")
    assert "random-shift" in error("input.augment=[random-shft 2]")
    assert "nowhere" in error(f"data.train={letters}/nowhere")
    (tmp_path / "empty").mkdir()
    error(f"data.train={tmp_path / 'empty'}")
    assert "NO_SUCH" in error("data.train=${NO_SUCH}/x")
    assert "batch" in error("train.batch=100000")
    assert "train.batch = 20 cannot be divided into train.accumulate = 3 equal parts" in error("train.accumulate=3")
    assert "CHANNELS must be a number from 1 to" in error("model={layers=[conv 0 3, flatten, linear 10]}")
    assert 'layer "dropout 2"' in error("model={layers=[dropout 2, flatten, linear 10]}")
    assert "finite" in error("train.optimizer.lr=inf")
    assert "did you mean 'accuracy'" in error("eval.metrics=[acc]")


def test_damaged_pictures_are_counted_named_and_skipped(millrace, recipe, letters, tmp_path):
    data = tmp_path / "letters"
    shutil.copytree(letters, data)
    pictures = sorted((data / "train/A").iterdir())
    pictures[0].write_bytes(pictures[0].read_bytes()[:200])
    pictures[1].write_bytes(b"no picture at all")
    train = ["train", recipe, f"data.train={data}/train", "train.steps=2", "data.test="]
    text = millrace(*train, "--out", tmp_path / "run").stdout
    assert pictures[0].name in text and pictures[1].name in text and text.count("skipped ") == 2
    (data / "train/K").mkdir()
    error = millrace(*train, "--out", tmp_path / "never", code=1).stderr
    assert "class K" in error or "has 11 classes" in error


@pytest.mark.parametrize("change", ["cut short", "overwritten"])
def test_data_that_changes_while_it_is_read_stops_a_training_that_resumes(binary, recipe, letters, millrace, tmp_path, change):
    data, run = tmp_path / "letters.tar", tmp_path / "run"
    with tarfile.open(data, "w") as tar:
        tar.add(letters / "train", "train")
    whole = data.read_bytes()
    process = start(binary, "train", recipe, f"data.train={data}", "data.cache_mb=0", "train.epochs=100000", "--out", run)
    wait_for_step(process, run, 8)
    if change == "cut short":
        os.truncate(data, 4096)
    else:
        data.write_bytes(bytes(len(whole)))
    text = process.communicate(timeout=60)[0]
    assert process.returncode == 1, text
    assert "letters.tar: it was changed while it was read" in text or "letters.tar: a part of it was gone" in text
    assert "--resume goes on" in text
    data.write_bytes(whole)
    before = steps_logged(run)
    process = start(binary, "train", run, "--resume")
    wait_for_step(process, run, before + 8)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130


def test_test_time_augmentation_and_explain(whole, recipe, millrace, tmp_path):
    def evaluated(*words):
        return json.loads(millrace("eval", whole, "--json", *words).stdout)

    plain, flip, shift = (evaluated(f"input.tta={tta}") for tta in ("none", "flip", "shift"))
    assert plain["log-loss"] != flip["log-loss"] != shift["log-loss"]
    assert plain["log-loss"] == evaluated()["log-loss"]
    assert shift["targets"] == 100
    assert evaluated("eval.metrics=[accuracy]", "input.tta=flip")["accuracy"] == flip["accuracy"]
    refused = millrace("eval", whole, "train.batch=5", code=1).stderr
    assert "'train.batch=5': of a trained model only this can be changed: those of [eval], input.tta" in refused
    # Earlier tests see each picture once, the last one as the recipe says.
    millrace("train", recipe, "input.tta=flip", "--out", tmp_path / "flipped")
    tests = [line for line in metric_lines(tmp_path / "flipped") if "test/log-loss" in line]
    before = [line for line in metric_lines(whole) if "test/log-loss" in line]
    assert [t["test/log-loss"] == b["test/log-loss"] for t, b in zip(tests, before)] == [True, True, False]
    assert tests[-1]["test/log-loss"] == flip["log-loss"]
    error = millrace("train", recipe, "input.tta=flop", "--out", tmp_path / "never", code=1).stderr
    assert "input.tta" in error and all(word in error for word in ("none", "flip", "shift"))
    text = millrace("explain", recipe).stdout
    assert "conv2d" in text and "memory of a step" in text
    assert "accumulate" not in text and "accumulate" in millrace("explain", recipe, "train.accumulate=2").stdout


def test_eval_prints_what_its_json_says(millrace, whole):
    found, text = json.loads(millrace("eval", whole, "--json").stdout), millrace("eval", whole).stdout
    share, (low, high) = found["accuracy"], found["intervals"]["accuracy"]
    assert f"{100 * share:.2f} %  (95 % interval {100 * low:.2f} to {100 * high:.2f} %)" in text
    loss, (low, high) = found["log-loss"], found["intervals"]["log-loss"]
    assert f"{loss:.4f}  (95 % interval {low:.4f} to {high:.4f})" in text


def test_eval_and_predict_say_what_is_wrong(millrace, whole, letters, tmp_path):
    assert "run folder" in millrace("eval", tmp_path / "none", code=1).stderr
    (tmp_path / "x.jpg").write_bytes(b"not a picture")
    good = next(letters.glob("test/B/*.jpg"))
    result = millrace("predict", whole, tmp_path / "x.jpg", good, code=1)
    assert "x.jpg" in result.stderr and str(good) in result.stdout
    big = tmp_path / "big.png.jpg"
    Image.open(good).convert("RGB").resize((90, 50)).save(big, "JPEG")
    assert str(big) in millrace("predict", whole, big).stdout
    other = tmp_path / "other"
    shutil.copytree(letters / "test", other)
    (other / "A").rename(other / "Z")
    assert "'Z'" in millrace("eval", whole, other, code=1).stderr


def test_an_interrupt_while_reading_ends_at_once(binary, recipe, tmp_path):
    """Before the first checkpoint there is nothing to save."""
    out = tmp_path / "run"
    process = start(binary, "train", recipe, "input.resize=1500", "data.cache_mb=1000000", "--out", out)
    assert "reading" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM and not out.exists()


def test_pictures_that_cannot_be_read_count_in_no_result(millrace, recipe, whole, letters, tmp_path):
    """With the decoded pictures cached or not: damaged ones are named, counted, and stand for no result."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    shutil.copytree(letters / "test", good)
    shutil.copytree(letters / "test", bad)
    for number in (0, 3, 4):
        name = sorted(p.name for p in (bad / "C").iterdir())[number]
        (bad / "C" / name).write_bytes(b"\xff\xd8\xff")
        (good / "C" / name).unlink()
    expected = json.loads(millrace("eval", whole, good, "--json").stdout)
    result = millrace("eval", whole, bad, "--json")
    got = json.loads(result.stdout)
    assert got["targets"] == 97
    for metric in ("accuracy", "top-5"):
        assert got[metric] == expected[metric]
    assert got["log-loss"] == pytest.approx(expected["log-loss"], rel=1e-6)
    assert "3 of 100 pictures cannot be read" in result.stderr and name in result.stderr

    text = millrace("train", recipe, f"data.test={bad}", "data.cache_mb=0", "train.steps=1", "--out", tmp_path / "run").stdout
    assert "3 of 100 pictures cannot be read" in text


def test_resuming_on_other_data_is_refused(millrace, recipe, letters, tmp_path):
    data, run = tmp_path / "data", tmp_path / "run"
    shutil.copytree(letters / "train", data)
    millrace("train", recipe, f"data.train={data}", "data.test=", "train.steps=2", "--out", run)
    assert "going on from step 2 of 2" in millrace("train", run, "--resume").stdout
    extra = next((data / "B").iterdir())
    shutil.copy(extra, data / "B/zzz.jpg")
    assert "501 pictures" in millrace("train", run, "--resume", code=1).stderr
    (data / "B").rename(data / "Q")
    assert "'Q'" in millrace("train", run, "--resume", code=1).stderr


def test_a_finished_run_resumed_tells_its_last_results(millrace, whole, tmp_path):
    run = tmp_path / "a run's folder"
    shutil.copytree(whole, run)
    unfinished = run / "checkpoints/step-00000099.safetensors.tmp-1-0"
    unfinished.write_bytes(b"x")
    text = millrace("train", run, "--resume").stdout
    quoted = str(run).replace("'", "'\\''")
    assert f"millrace eval '{quoted}'" in text
    outcome = json.loads(millrace("train", run, "--resume", "--json").stdout)
    last = [line for line in metric_lines(whole) if "test/accuracy" in line][-1]
    assert outcome["test"]["accuracy"] == last["test/accuracy"]
    newest = sorted((run / "checkpoints").glob("*.safetensors"))[-1]
    newest.unlink()  # so that it goes on a few steps, and saves
    millrace("train", run, "--resume")
    assert not unfinished.exists()
    assert_same_run(whole, run)


def test_run_folders_are_numbered_after_the_highest(millrace, recipe, tmp_path):
    (tmp_path / "runs/tiny-4").mkdir(parents=True)
    (tmp_path / "runs/tiny-x").mkdir()
    text = millrace("train", recipe, "train.steps=1", "data.test=", cwd=tmp_path).stdout
    assert "run folder: runs/tiny-5" in text and "eval runs/tiny-5 TEST-SET" in text
    assert "runs/tiny-5" in millrace("train", recipe, "--resume", cwd=tmp_path).stdout


def test_an_output_that_cannot_be_made_is_found_before_the_data_is_read(millrace, recipe, tmp_path):
    (tmp_path / "file").write_text("")
    result = millrace("train", recipe, "--out", tmp_path / "file/run", code=1)
    assert "is no folder" in result.stderr and "reading" not in result.stdout


def test_two_processes_do_not_train_in_one_folder(binary, recipe, whole, millrace, tmp_path):
    run = tmp_path / "run"
    process = start(binary, "train", recipe, "--out", run)
    wait_for_step(process, run, 1)
    process.send_signal(signal.SIGSTOP)
    second = millrace("train", run, "--resume", code=1)
    process.send_signal(signal.SIGCONT)
    assert "in use" in second.stderr
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert_same_run(whole, run)
