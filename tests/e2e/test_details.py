"""What a training logs beside losses and metrics: norms, speed, histograms, samples of predictions,
hyperparameters."""

import csv
import json
import random
import re
import sqlite3

import numpy as np
import pytest
from conftest import write_rankings, write_texts
from PIL import Image
from safetensors import safe_open
from test_recovery import RECIPE, write_rows
from test_train import assert_same_run, letters, metric_lines, recipe, start, wait_for_step  # noqa: F401

event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
from tensorboard.plugins.hparams import plugin_data_pb2  # noqa: E402


def events_of(run):
    events = event_accumulator.EventAccumulator(str(run), size_guidance={"tensors": 0, "scalars": 0})
    events.Reload()
    return events


def raw_lines(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def rows(tmp_path):
    write_rows(tmp_path / "rows.csv")
    path = tmp_path / "rows.toml"
    path.write_text(RECIPE.format(rows=tmp_path / "rows.csv"))
    return path


def test_norms_and_speed_are_in_all_logs_alike(rows, millrace, tmp_path):
    run, base = tmp_path / "run", tmp_path / "all.sqlite"
    # Plain descent, so that an update is the rate times the gradient.
    millrace("train", rows, "train.log_every=10", "train.optimizer={kind=sgd, lr=0.01, momentum=0}", "train.epochs=2", "train.checkpoint_steps=1",
             "train.keep_checkpoints=100", f"train.log=[sqlite {base}]", "--out", run)
    lines = [line for line in raw_lines(run) if "gradient_norm" in line]
    assert [line["step"] for line in lines] == [10, 20, 30, 40, 50]
    parts = {key.split("/", 1)[1] for key in lines[0] if key.startswith("weight_norm/")}
    assert len(parts) >= 2
    for line in lines:
        with safe_open(run / f"checkpoints/step-{line['step'] - 1:08}.safetensors", "np") as before, \
             safe_open(run / f"checkpoints/step-{line['step']:08}.safetensors", "np") as after:
            names = [name for name in before.keys() if name.startswith("model.") and "running" not in name and "batches" not in name]
            for part in parts:
                own = [name for name in names if name.removeprefix("model.").rsplit(".", 1)[0] == part]
                old = np.concatenate([before.get_tensor(name).ravel() for name in own])
                new = np.concatenate([after.get_tensor(name).ravel() for name in own])
                assert line[f"weight_norm/{part}"] == pytest.approx(np.linalg.norm(old), rel=1e-4)
                if line[f"weight_norm/{part}"] > 1e-3:
                    assert line[f"update_ratio/{part}"] == pytest.approx(np.linalg.norm(new - old) / np.linalg.norm(old), rel=1e-2)
                assert line[f"gradient_norm/{part}"] == pytest.approx(np.linalg.norm(new - old) / 0.01, rel=1e-2, abs=1e-4)
        whole = sum(line[f"gradient_norm/{part}"] ** 2 for part in parts) ** 0.5
        assert line["gradient_norm"] == pytest.approx(whole, rel=1e-5)
        assert line["progress/samples"] == 20 * line["step"] and line["system/samples_per_second"] > 0
        assert 0 < line["system/memory_bytes"] < 1e11 and line["system/hours"] > 0 and 0 <= line["system/waiting"] <= 1
    events = events_of(run)
    part = sorted(parts)[0]
    for curve in ("gradient_norm", f"gradient_norm/{part}", "system/samples_per_second", "system/cpus", "progress/samples"):
        assert {e.step for e in events.Scalars(curve)} >= {10, 20, 30, 40, 50}, curve
    assert [e.value for e in events.Scalars(f"weight_norm/{part}")] == [np.float32(line[f"weight_norm/{part}"]) for line in lines]
    with sqlite3.connect(base) as connection:
        stored = connection.execute("SELECT step, value FROM metrics WHERE name = ? ORDER BY step", [f"weight_norm/{part}"]).fetchall()
    # A database takes longer records at most twice a second.
    assert stored and set(stored) <= {(line["step"], line[f"weight_norm/{part}"]) for line in lines}
    epochs = [line for line in raw_lines(run) if "train/loss" in line]
    assert all(line["system/samples_per_second"] > 0 and line["system/memory_bytes"] > 0 for line in epochs)


def test_norms_change_no_training_and_go_on_where_it_was_killed(rows, binary, millrace, tmp_path):
    def weights(run):
        path = sorted((run / "checkpoints").iterdir())[-1]
        with safe_open(path, "np") as file:
            return {name: file.get_tensor(name).tobytes() for name in file.keys()}

    told = ("train.epochs=20", "train.log_every=7", "train.histograms=2")
    millrace("train", rows, "train.epochs=20", "--out", tmp_path / "plain")
    millrace("train", rows, *told, "--out", tmp_path / "whole")
    assert weights(tmp_path / "plain") == weights(tmp_path / "whole")
    process = start(binary, "train", rows, *told, "--out", tmp_path / "run")
    wait_for_step(process, tmp_path / "run", 60)
    process.kill()
    process.wait()
    millrace("train", tmp_path / "run", "--resume")
    assert_same_run(tmp_path / "whole", tmp_path / "run")
    first, second = events_of(tmp_path / "whole"), events_of(tmp_path / "run")
    assert first.Tags()["tensors"] == second.Tags()["tensors"]
    for tag in first.Tags()["tensors"]:
        assert [(e.step, e.tensor_proto) for e in first.Tensors(tag)] == [(e.step, e.tensor_proto) for e in second.Tensors(tag)], tag


def test_tensorboard_has_histograms_of_weights(rows, millrace, tmp_path):
    run = tmp_path / "run"
    millrace("train", rows, "train.histograms=2", "train.epochs=4", "train.keep_checkpoints=9", "--out", run)
    events = events_of(run)
    tags = [tag for tag in events.Tags()["tensors"] if tag.startswith("weights/")]
    assert len(tags) >= 4 and set(tags) <= set(events.PluginTagToContent("histograms"))
    from tensorboard.util import tensor_util

    for tag in tags:
        assert [e.step for e in events.Tensors(tag)] == [52, 104]
        for event in events.Tensors(tag):
            with safe_open(run / f"checkpoints/step-{event.step:08}.safetensors", "np") as file:
                values = file.get_tensor(tag.replace("weights/", "model.")).astype(np.float64)
            buckets = tensor_util.make_ndarray(event.tensor_proto)
            counts, edges = np.histogram(values, bins=len(buckets))
            if len(buckets) > 1:
                assert np.allclose(buckets[:, 0], edges[:-1]) and np.allclose(buckets[:, 1], edges[1:])
            assert buckets[:, 2].sum() == values.size
            assert np.abs(buckets[:, 2] - counts).sum() <= 0.02 * values.size + 2  # what lies on an edge


def test_the_recipe_is_a_line_of_tensorboards_hyperparameters(rows, millrace, tmp_path):
    run = tmp_path / "run"
    millrace("train", rows, "train.epochs=1", "train.optimizer.lr=0.003", "--out", run)
    contents = events_of(run).PluginTagToContent("hparams")
    data = {tag: plugin_data_pb2.HParamsPluginData.FromString(content) for tag, content in contents.items()}
    assert set(data) == {"_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info"}
    experiment = data["_hparams_/experiment"].experiment
    assert "test/mae" in [metric.name.tag for metric in experiment.metric_infos]
    begun = data["_hparams_/session_start_info"].session_start_info.hparams
    assert begun["train.optimizer.lr"].number_value == 0.003 and begun["train.optimizer.kind"].string_value == "adamw"
    assert begun["train.exact"].WhichOneof("kind") == "bool_value"
    assert {info.name for info in experiment.hparam_infos} == set(begun)
    assert data["_hparams_/session_end_info"].session_end_info.status == 1


def shown(run):
    """What samples.md has: rows of sample, target, prediction."""
    lines = (run / "samples.md").read_text().splitlines()
    assert lines[0].startswith("Step ") and lines[2:4] == ["| sample | target | prediction |", "|---|---|---|"]
    return [re.split(r"(?<!\\) \| ", line[2:-2]) for line in lines[4:]]


def test_predictions_are_shown_with_their_targets(rows, millrace, tmp_path):
    run = tmp_path / "run"
    millrace("train", rows, "train.epochs=2", "train.samples=3", "--out", run)
    page = (run / "samples.md").read_text()
    assert page.startswith("Step 52\n") and not (run / "samples.png").exists()
    events = events_of(run)
    texts = [e.tensor_proto.string_val[0].decode() for e in events.Tensors("samples")]
    assert [e.step for e in events.Tensors("samples")] == [26, 52]
    assert texts[1] == page.split("\n\n", 1)[1] and texts[0] != texts[1]
    assert "samples" in events.PluginTagToContent("text")
    # The same rows each time, from everywhere in the test set, with what `predict` says of them.
    assert [line.split(" | ")[:2] for line in texts[0].splitlines()] == [line.split(" | ")[:2] for line in texts[1].splitlines()]
    told = [json.loads(line)["numbers"]["y"] for line in millrace("predict", run, tmp_path / "rows.csv", "--json").stdout.splitlines()]
    with open(tmp_path / "rows.csv") as file:
        truth = [float(line["y"]) for line in csv.DictReader(file)]
    places = []
    for _, target, prediction in shown(run):
        place = min(range(len(truth)), key=lambda i: abs(truth[i] - float(target.split()[1])))
        places.append(place)
        assert float(prediction.split()[1]) == pytest.approx(told[place], rel=1e-3)
    assert places == sorted(places) and places[1] - places[0] > 100 and places[2] - places[1] > 100
    millrace("train", rows, "train.epochs=1", "train.samples=0", "--out", tmp_path / "none")
    assert not (tmp_path / "none/samples.md").exists()
    millrace("train", rows, "train.epochs=1", "train.samples=64", "eval.batch=7", "--out", tmp_path / "many")
    assert len(shown(tmp_path / "many")) == len({row[1] for row in shown(tmp_path / "many")}) > 50


def test_pictures_are_shown_as_one_sheet(recipe, millrace, tmp_path):  # noqa: F811
    run = tmp_path / "run"
    millrace("train", recipe, "train.epochs=1", "train.samples=10", "--out", run)
    (event,) = events_of(run).Tensors("samples/pictures")
    width, height, png = event.tensor_proto.string_val
    with Image.open(run / "samples.png") as sheet:
        assert (int(width), int(height)) == sheet.size and sheet.width >= 4 * 96
    assert png == (run / "samples.png").read_bytes()
    # The test set is sorted by class, and has ten.
    assert len({target for _, target, _ in shown(run)}) == 10


TEXTS = """
[data]
train = "corpus.txt"
test_share = 0.1
[input]
kind = "tokens"
tokenizer = "byte"
length = 48
{input}
[output]
kind = "tokens"
[model]
kind = "{model}"
width = 32
depth = 1
heads = 2
[train]
epochs = 1
batch = 32
"""


@pytest.mark.parametrize("how", ["next", "masked"])
def test_texts_are_shown_beside_what_is_predicted_of_them(millrace, tmp_path, how):
    write_texts(tmp_path)
    recipe = TEXTS.format(input='masked = "0.15 3"' if how == "masked" else "", model="encoder" if how == "masked" else "gpt")
    (tmp_path / "r.toml").write_text(recipe)
    millrace("train", "r.toml", "train.samples=4", "--out", "run", cwd=tmp_path)
    rows = shown(tmp_path / "run")
    assert len(rows) == 4
    for _, target, prediction in rows:
        if how == "next":
            assert len(target) > 40 and len(prediction) > 40 and target != prediction
            assert sum(a == b for a, b in zip(target, prediction)) > 5  # some letters after others are easy
        else:
            assert 0 < len(target) < 30 and prediction
            for verb, text in (("predict", "some words"), ("generate", "some words")):
                said = millrace(verb, "run", text, cwd=tmp_path, code=1).stderr
                assert "which tokens are masked" in said and "train.init_from" in said
    with open(tmp_path / "run/metrics.jsonl") as file:
        last = [json.loads(line) for line in file if "progress/tokens" in line][-1]
    assert last["progress/tokens"] == 48 * last["progress/samples"] and last["system/tokens_per_second"] > 0


def test_several_outputs_are_shown_with_their_names(millrace, tmp_path):
    draw = random.Random(3)
    with open(tmp_path / "rows.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "note", "price", "kind", "tags"])
        for _ in range(300):
            x = draw.random()
            tags = [tag for tag, holds in (("low", x < 0.5), ("odd|*", x > 0.3)) if holds]
            writer.writerow([f"{x:.4f}", draw.choice(["a <b> c", "Ümlaut | pipe", "\x1b[31m"]), f"{3 * x:.3f}", "big" if x > 0.5 else "<small>", ",".join(tags)])
    (tmp_path / "r.toml").write_text("""
[data]
train = "rows.csv"
test_share = 0.2
[inputs.row]
kind = "table"
[inputs.note]
kind = "text"
column = "note"
tokenizer = "byte"
length = 16
[outputs.price]
kind = "number"
column = "price"
[outputs.size]
kind = "class"
column = "kind"
[outputs.tags]
kind = "classes"
column = "tags"
[train]
epochs = 2
batch = 20
""")
    millrace("train", "r.toml", "--out", "run", cwd=tmp_path)
    rows = shown(tmp_path / "run")
    assert len(rows) == 8
    for words, target, prediction in rows:
        assert words.startswith("row ") and ", note " in words and "\x1b" not in words
        assert re.match(r"price [\d.]+, size (big|&lt;small>), tags ", target.replace("price price", "price")), target
        assert "size " in prediction and "tags " in prediction and "price " in prediction


def test_long_texts_are_cut_between_characters(millrace, tmp_path):
    rows = [f"{i % 2},{'x' + 'ä' * 400 if i % 2 else 'short'}\n" for i in range(100)]
    (tmp_path / "rows.csv").write_text("size,label\n" + "".join(rows))
    (tmp_path / "r.toml").write_text('[data]\ntrain = "rows.csv"\ntest_share = 0.2\n[output]\ncolumn = "label"\n[train]\nepochs = 1\nbatch = 10\n')
    millrace("train", "r.toml", "--out", "run", cwd=tmp_path)
    assert {target for _, target, _ in shown(tmp_path / "run")} == {"short", "x" + 249 * "ä" + "…"}


def test_queries_duels_and_fitted_models_are_shown(millrace, tmp_path):
    write_rankings(tmp_path)
    (tmp_path / "rank.toml").write_text("""
[data]
train = "rank.train"
test = "rank.test"
[output]
kind = "rank"
[model]
kind = "table"
width = 8
depth = 1
[train]
epochs = 1
batch = 8
""")
    millrace("train", "rank.toml", "--out", "rank", cwd=tmp_path)
    for _, target, prediction in shown(tmp_path / "rank"):
        grades = target.split(": ")[1].split()
        told = re.findall(r"row (\d+)", prediction)
        # No row that only pads the query.
        assert len(told) == min(5, len(grades)) and all(1 <= int(row) <= len(grades) for row in told)
    (tmp_path / "duels.toml").write_text("""
[data]
train = "duels.csv"
test_share = 0.2
header = "yes"
[input]
kind = "duel"
[output]
kind = "duel"
[train]
epochs = 3
optimizer = "lbfgs"
""")
    millrace("train", "duels.toml", "train.log_every=1", "--out", "duels", cwd=tmp_path)
    assert all(target == "the first has won" and "wins with" in prediction for _, target, prediction in shown(tmp_path / "duels"))
    write_rows(tmp_path / "rows.csv")
    (tmp_path / "trees.toml").write_text("""
[data]
train = "rows.csv"
test_share = 0.1
[output]
kind = "number"
column = "y"
[model]
kind = "boosting"
rounds = 20
""")
    millrace("train", "trees.toml", "--out", "trees", cwd=tmp_path)
    rows = shown(tmp_path / "trees")
    assert len(rows) == 8
    assert sum(abs(float(target.split()[1]) - float(told.split()[1])) < 1.5 for _, target, told in rows) >= 6
    last = raw_lines(tmp_path / "trees")[-1]
    assert last["system/memory_bytes"] > 0 and last["progress/samples"] > 0
