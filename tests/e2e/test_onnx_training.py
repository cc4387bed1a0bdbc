"""ONNX files that go on being trained, and the opset that models are written in."""

import importlib.util
import json
import shutil

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import ROOT, write_samples
from onnx import TensorProto, helper, numpy_helper
from safetensors import safe_open
from test_docs import blocks, commands
from test_train import assert_same_run

STORED = ROOT / "tests/e2e/onnx_training"  # by tools/onnx_losses.py small

PICTURES = """
[data]
train = "train.tar"
test = "train.tar"
order = "sequential"
[input]
kind = "picture"
mean = {mean}
std = {std}
[output]
kind = "class"
[model]
kind = "model.onnx"
[train]
steps = {steps}
batch = {batch}
optimizer = {{ kind = "sgd", lr = {lr}, momentum = {momentum}, weight_decay = {weight_decay} }}
log_every = 1
[eval]
metrics = ["log-loss"]
"""


@pytest.fixture(scope="session")
def drawn():
    """tools/onnx_losses.py, whose pictures need no PyTorch."""
    spec = importlib.util.spec_from_file_location("onnx_losses", ROOT / "tools/onnx_losses.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pictures(drawn, tmp_path):
    """A desk with PyTorch's export, its pictures in the order in which PyTorch read them, and what it
    measured."""
    told = json.loads((STORED / "losses.json").read_text())
    shutil.copy(STORED / "model.onnx", tmp_path)
    drawn.write_tar(tmp_path / "train.tar", *drawn.drawn(told["batch"] * len(told["losses"]), 4, 12))
    recipe = PICTURES.format(mean=told["mean"], std=told["std"], steps=len(told["losses"]), batch=told["batch"], **told["optimizer"])
    (tmp_path / "recipe.toml").write_text(recipe)
    return told


def lines_of(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def losses_of(run):
    return [line["loss"] for line in lines_of(run) if "loss" in line and "lr" in line]


def weights_of(run):
    with safe_open(sorted((run / "checkpoints").glob("step-*.safetensors"))[-1], "np") as file:
        return {name[6:]: file.get_tensor(name) for name in file.keys() if name.startswith("model.")}


def write_mlp(path, features=5, classes=3, dropout=0.0, softmax=False, shift=False, batch="batch", seed=3):
    """An MLP as exporters write it: Gemm, Relu and so on, and in front what prepares its input."""
    draw = np.random.default_rng(seed)
    weights = {
        "fc1.weight": draw.normal(0, 0.5, (16, features)),
        "fc1.bias": np.zeros(16),
        "fc2.weight": draw.normal(0, 0.5, (classes, 16)),
        "fc2.bias": np.zeros(classes),
    }
    nodes, x = [], "x"
    if shift:
        weights["mean"] = np.full(features, 0.25)
        nodes.append(helper.make_node("Sub", [x, "mean"], ["shifted"]))
        x = "shifted"
    nodes += [
        helper.make_node("Gemm", [x, "fc1.weight", "fc1.bias"], ["hidden"], transB=1),
        helper.make_node("Relu", ["hidden"], ["active"]),
    ]
    active = "active"
    if dropout:
        nodes.append(helper.make_node("Dropout", [active, "ratio"], ["dropped"]))
        active = "dropped"
    nodes.append(helper.make_node("Gemm", [active, "fc2.weight", "fc2.bias"], ["logits"], transB=1))
    if softmax:
        nodes.append(helper.make_node("Softmax", ["logits"], ["probabilities"], axis=-1))
    initialisers = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    if dropout:
        initialisers.append(numpy_helper.from_array(np.array(dropout, np.float32), "ratio"))
    last = "probabilities" if softmax else "logits"
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, features])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, [batch, classes])],
        initialisers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return {name: value.astype(np.float32) for name, value in weights.items()}


TABLE = """
[data]
train = "rows.csv"
test = "rows.csv"
[input]
kind = "table"
[output]
kind = "class"
column = "label"
[model]
kind = "mlp.onnx"
{model}
[train]
epochs = {epochs}
batch = 30
optimizer = {{ kind = "adam", lr = 0.02 }}
{train}
"""


def write_rows(path, classes=3):
    draw = np.random.default_rng(1)
    x = draw.normal(0, 1, (300, 5))
    label = np.argmax(x[:, :classes], axis=1)
    path.write_text("a,b,c,d,e,label\n" + "".join(",".join(f"{v:.4f}" for v in row) + f",class{k}\n" for row, k in zip(x, label)))


def test_goes_on_as_pytorch_does(millrace, pictures, tmp_path):
    """Batch norms are trained, their statistics moved as PyTorch moves them; all numbers are PyTorch's
    own."""
    result = millrace("train", "recipe.toml", "--out", "run", cwd=tmp_path)
    assert "3 batch norms" in result.stdout + result.stderr
    run = tmp_path / "run"
    np.testing.assert_allclose(losses_of(run), pictures["losses"], atol=1e-3, rtol=0)
    assert abs(lines_of(run)[-1]["test/log-loss"] - pictures["all_after"]) < 1e-3
    weights = weights_of(run)
    assert {"stem.0.weight", "stem.1.weight", "stem.1.running_mean", "stem.1.running_var", "head.bias"} <= set(weights)
    # What was trained further is exported as any model.
    millrace("export", "run", "again.onnx", cwd=tmp_path)
    again = onnx.load(tmp_path / "again.onnx")
    onnx.checker.check_model(again, full_check=True)
    session = onnxruntime.InferenceSession(str(tmp_path / "again.onnx"), providers=["CPUExecutionProvider"])
    assert session.run(["logits"], {"pictures": np.zeros((5, 3, 12, 12), np.uint8)})[0].shape == (5, 4)


def test_running_statistics_move_by_the_unbiased_variance(millrace, pictures, drawn, tmp_path):
    millrace("train", "recipe.toml", "--out", "run", "train.steps=1", "train.batch=1", cwd=tmp_path)
    model = onnx.load(tmp_path / "model.onnx")
    norm = next(node for node in model.graph.node if node.op_type == "BatchNormalization")
    model.graph.output.append(helper.make_tensor_value_info(norm.input[0], TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    first = drawn.drawn(pictures["batch"] * len(pictures["losses"]), 4, 12)[0][:1] / 255.0
    x = (first - np.reshape(pictures["mean"], (3, 1, 1))) / np.reshape(pictures["std"], (3, 1, 1))
    y = session.run([norm.input[0]], {model.graph.input[0].name: x.astype(np.float32)})[0]
    weights = weights_of(tmp_path / "run")
    before = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for name, batch in ((norm.input[3], y.mean((0, 2, 3))), (norm.input[4], y.var((0, 2, 3), ddof=1))):
        np.testing.assert_allclose(weights[name], 0.9 * before[name] + 0.1 * batch, rtol=1e-5, atol=1e-6)


def test_resumes_bit_for_bit_without_the_file(millrace, pictures, tmp_path):
    whole = ["train", "recipe.toml", "--out", "whole", "train.checkpoint_steps=7"]
    millrace(*whole, cwd=tmp_path)
    millrace("train", "recipe.toml", "--out", "part", "train.checkpoint_steps=7", "train.steps=20", cwd=tmp_path)
    for file in (tmp_path / "part/checkpoints").iterdir():
        if int(file.name[5:-12]) > 7:
            file.unlink()
    (tmp_path / "model.onnx").unlink()  # the run has what it needs
    millrace("train", "--resume", "part", cwd=tmp_path)
    assert_same_run(tmp_path / "whole", tmp_path / "part")
    millrace("eval", "part", cwd=tmp_path)
    shutil.move(tmp_path / "part", tmp_path / "moved")
    millrace("predict", "moved", "train.tar", "-o", "out.csv", cwd=tmp_path)
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 321


def test_the_page_about_it(millrace, tmp_path):
    """docs/onnx.md's recipe and commands."""
    write_samples(tmp_path)
    shutil.copy(STORED / "model.onnx", tmp_path / "pretrained.onnx")
    (tmp_path / "recipe.toml").write_text(blocks("docs/onnx.md", "toml")[0])
    lines = [line for line in commands("docs/onnx.md") if "further" in line]
    assert [line.split()[1] for line in lines] == ["train", "eval", "export"]
    for line in lines:
        millrace(*line.split()[1:], cwd=tmp_path)
    assert {o.version for o in onnx.load(tmp_path / "further.onnx").opset_import} == {15}
    taken = weights_of(tmp_path / "runs/further")
    for name in ("stem.0.weight", "head.weight"):  # names that the page mentions
        assert name in taken
    # Cut at planes of pictures, whose means a new head is given.
    planes = next(node.output[0] for node in onnx.load(tmp_path / "pretrained.onnx").graph.node if node.op_type == "Relu")
    millrace("train", "recipe.toml", 'train.freeze=["stem 0"]', f"model.output_value={planes}", "--out", "runs/cut", cwd=tmp_path)
    cut = weights_of(tmp_path / "runs/cut")
    assert cut["head.weight"].shape == (2, 8) and "down.0.weight" not in cut


def test_a_table_and_the_keys_of_fine_tuning(millrace, tmp_path):
    weights = write_mlp(tmp_path / "mlp.onnx")
    write_rows(tmp_path / "rows.csv")
    (tmp_path / "r.toml").write_text(TABLE.format(model="", epochs=8, train='freeze = ["fc1 0"]\nrates = ["fc2.bias 0.001"]'))
    millrace("train", "r.toml", "--out", "run", cwd=tmp_path)
    after = weights_of(tmp_path / "run")
    assert set(after) == set(weights)
    np.testing.assert_array_equal(after["fc1.weight"], weights["fc1.weight"])
    assert 0 < np.abs(after["fc2.bias"] - weights["fc2.bias"]).max() < 0.01
    assert np.abs(after["fc2.weight"] - weights["fc2.weight"]).max() > 0.05


def test_adapters_train_alone_and_are_merged_on_export(millrace, tmp_path):
    weights = write_mlp(tmp_path / "mlp.onnx")
    # One more layer, whose weights lie the other way round.
    model = onnx.load(tmp_path / "mlp.onnx")
    weights["middle.weight"] = np.random.default_rng(8).normal(0, 0.4, (16, 16)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weights["middle.weight"], "middle.weight"))
    middle = [helper.make_node("MatMul", ["active", "middle.weight"], ["inner"]), helper.make_node("Tanh", ["inner"], ["bent"])]
    nodes = list(model.graph.node)
    nodes[-1].input[0] = "bent"
    del model.graph.node[:]
    model.graph.node.extend(nodes[:-1] + middle + nodes[-1:])
    onnx.checker.check_model(model)
    onnx.save(model, tmp_path / "mlp.onnx")
    write_rows(tmp_path / "rows.csv")
    (tmp_path / "r.toml").write_text(TABLE.format(model="", epochs=4, train="lora = 2\nlora_alpha = 6\ncheckpoint_steps = 9"))
    millrace("train", "r.toml", "--out", "whole", cwd=tmp_path)
    after = weights_of(tmp_path / "whole")
    adapters = {f"{layer}.lora.{part}" for layer in ("fc1", "middle") for part in "ab"}
    assert set(after) == set(weights) | adapters
    moved = {name for name in weights if not np.array_equal(after[name], weights[name])}
    assert moved == {"fc2.weight", "fc2.bias"}  # the head
    assert all(np.abs(after[name]).max() > 1e-3 for name in adapters)

    millrace("train", "r.toml", "--out", "part", cwd=tmp_path)
    for file in (tmp_path / "part/checkpoints").iterdir():
        if int(file.name[5:-12]) > 9:
            file.unlink()
    millrace("train", "--resume", "part", cwd=tmp_path)
    assert_same_run(tmp_path / "whole", tmp_path / "part")

    # Merged, it says the same: in ONNX Runtime, and computed here.
    merged = {name: array for name, array in after.items() if name not in adapters}
    for layer in ("fc1", "middle"):
        merged[f"{layer}.weight"] = after[f"{layer}.weight"] + 3 * after[f"{layer}.lora.b"] @ after[f"{layer}.lora.a"]
    millrace("export", "whole", "merged.safetensors", cwd=tmp_path)
    with safe_open(tmp_path / "merged.safetensors", "np") as file:
        assert set(file.keys()) == set(merged)
        for name, array in merged.items():
            np.testing.assert_allclose(file.get_tensor(name), array, atol=1e-6)
    millrace("export", "whole", "merged.onnx", cwd=tmp_path)
    exported = onnx.load(tmp_path / "merged.onnx")
    onnx.checker.check_model(exported, full_check=True)
    assert not [each.name for each in exported.graph.initializer if "lora" in each.name]
    told = [json.loads(line)["logits"] for line in millrace("predict", "whole", "rows.csv", "--json", cwd=tmp_path).stdout.splitlines()]
    rows = np.genfromtxt(tmp_path / "rows.csv", delimiter=",", skip_header=1, usecols=range(5))
    session = onnxruntime.InferenceSession(str(tmp_path / "merged.onnx"), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    judge = session.run(["logits"], {given.name: rows.astype(np.float64 if "double" in given.type else np.float32)})[0]
    np.testing.assert_allclose(told, judge, atol=1e-4)
    np.savez(tmp_path / "rows.npz", **{given.name: rows})
    millrace("predict", "merged.onnx", "rows.npz", "-o", "own.jsonl", cwd=tmp_path)
    own = [json.loads(line)["logits"] for line in (tmp_path / "own.jsonl").read_text().splitlines()]
    np.testing.assert_allclose(own, judge, atol=1e-4)

    refused = lambda *changes: millrace("train", "r.toml", *changes, "--out", "none", cwd=tmp_path, code=1).stderr
    assert "would have as many weights" in refused("train.lora=5")
    assert "called '*.query'" in refused("train.lora_layers=[*.query]")


def test_the_head_is_new_where_the_classes_are_others(millrace, tmp_path):
    weights = write_mlp(tmp_path / "mlp.onnx", classes=7)
    write_rows(tmp_path / "rows.csv")
    (tmp_path / "r.toml").write_text(TABLE.format(model="", epochs=8, train=""))
    result = millrace("train", "r.toml", "--out", "run", cwd=tmp_path)
    assert "the head behind 'active' is new" in result.stdout + result.stderr
    after = weights_of(tmp_path / "run")
    assert set(after) == {"fc1.weight", "fc1.bias", "head.weight", "head.bias"}
    assert after["head.weight"].shape == (3, 16)
    assert lines_of(tmp_path / "run")[-1]["test/accuracy"] > 0.6
    refused = millrace("train", "r.toml", "model.head=keep", "--out", "other", cwd=tmp_path, code=1)
    assert "[batch, 3]" in refused.stderr
    millrace("train", "r.toml", "model.output_value=hidden", "train.epochs=1", "--out", "cut", cwd=tmp_path)
    assert weights_of(tmp_path / "cut")["head.weight"].shape == (3, 16)
    write_mlp(tmp_path / "mlp.onnx")
    millrace("train", "r.toml", "model.head=replace", "train.epochs=1", "--out", "replaced", cwd=tmp_path)
    assert "fc2.weight" not in weights_of(tmp_path / "replaced")
    assert weights["fc1.weight"].shape == after["fc1.weight"].shape


def test_softmax_constants_and_dropout(millrace, tmp_path):
    """A softmax at the end is not trained through, what prepares the input is no weight, and dropout
    drops."""
    write_rows(tmp_path / "rows.csv")
    recipe = TABLE.format(model="", epochs=1, train="log_every = 1\nseed = 4")
    (tmp_path / "r.toml").write_text(recipe)
    write_mlp(tmp_path / "mlp.onnx", softmax=True, shift=True)
    result = millrace("train", "r.toml", "--out", "plain", cwd=tmp_path)
    assert "its Softmax at the end is left out" in result.stdout + result.stderr
    assert "mean" not in weights_of(tmp_path / "plain")
    write_mlp(tmp_path / "mlp.onnx", softmax=True, shift=True, dropout=0.5)
    millrace("train", "r.toml", "--out", "dropped", cwd=tmp_path)
    millrace("train", "r.toml", "--out", "twice", cwd=tmp_path)
    assert losses_of(tmp_path / "dropped")[0] != losses_of(tmp_path / "plain")[0]
    assert_same_run(tmp_path / "dropped", tmp_path / "twice")


def test_what_cannot_be_exported_is_trained_all_the_same(millrace, tmp_path):
    write_rows(tmp_path / "rows.csv")
    (tmp_path / "r.toml").write_text(TABLE.format(model="", epochs=1, train=""))
    write_mlp(tmp_path / "mlp.onnx")
    model = onnx.load(tmp_path / "mlp.onnx")
    node = helper.make_node
    nodes = [
        node("Abs", ["x"], ["abs"]),
        node("Cast", ["abs"], ["whole"], to=TensorProto.UINT32),
        node("BitShift", ["whole", "bits"], ["shifted"], direction="LEFT"),
        node("Cast", ["shifted"], ["twice"], to=TensorProto.FLOAT),
        node("Add", ["x", "twice"], ["odd"]),
    ]
    model.graph.node[0].input[0] = "odd"
    for at, each in enumerate(nodes):
        model.graph.node.insert(at, each)
    model.graph.initializer.append(numpy_helper.from_array(np.array(1, np.uint32), "bits"))
    onnx.save(model, tmp_path / "mlp.onnx")
    result = millrace("train", "r.toml", "--out", "run", cwd=tmp_path)
    assert "there is no model.onnx: the operator shift_left" in result.stdout + result.stderr
    assert not (tmp_path / "run/model.onnx").exists()
    assert json.loads(millrace("eval", "run", "--json", cwd=tmp_path).stdout)["accuracy"] > 0.4
    assert "shift_left" in millrace("export", "run", "out.onnx", cwd=tmp_path, code=1).stderr


def test_refusals_say_what_to_do(millrace, tmp_path):
    write_rows(tmp_path / "rows.csv")
    (tmp_path / "r.toml").write_text(TABLE.format(model="", epochs=1, train=""))

    def refusal(*overrides):
        result = millrace("train", "r.toml", *overrides, "--out", "run", cwd=tmp_path, code=1)
        assert not (tmp_path / "run").exists()
        return result.stderr

    assert "mlp.onnx" in refusal()  # is not there
    (tmp_path / "mlp.onnx").write_bytes(b"no model")
    assert "mlp.onnx" in refusal()
    write_mlp(tmp_path / "mlp.onnx", features=9)
    assert "hidden" in refusal() or "Gemm" in refusal()
    write_mlp(tmp_path / "mlp.onnx")
    assert "'nowhere'" in refusal("model.output_value=nowhere")
    assert "model.kind = 'onnx'" in refusal("model.width=3") or "width" in refusal("model.width=3")


def test_an_own_export_is_entered_behind_what_prepares_its_input(millrace, tmp_path):
    """An exported model takes rows as they are; the recipe's input has prepared them already."""
    write_rows(tmp_path / "rows.csv")
    own = TABLE.format(model="", epochs=4, train="").replace("mlp.onnx", "mlp")
    (tmp_path / "own.toml").write_text(own)
    millrace("train", "own.toml", "--out", "first", cwd=tmp_path)
    millrace("export", "first", "mlp.onnx", cwd=tmp_path)
    (tmp_path / "r.toml").write_text(TABLE.format(model="", epochs=1, train=""))
    told = millrace("train", "r.toml", "--out", "second", cwd=tmp_path, code=None).stderr
    assert "model.input_value = " in told
    value = told.split('model.input_value = "')[1].split('"')[0]
    millrace("train", "r.toml", f"model.input_value={value}", "--out", "second", cwd=tmp_path)
    first, second = weights_of(tmp_path / "first"), weights_of(tmp_path / "second")
    assert set(second) == set(first)
    for name in first:  # it went on from there, and moved little
        assert np.abs(first[name] - second[name]).max() < 0.2, name


@pytest.mark.parametrize("opset", [13, 15, 17, 18, 20, 21, 23, 25])
def test_export_chooses_its_opset(millrace, opset_runs, tmp_path, opset):
    for name, run in opset_runs.items():
        file = tmp_path / f"{name}.onnx"
        millrace("export", run, file, "--opset", opset)
        model = onnx.load(file)
        assert {o.version for o in model.opset_import if o.domain == ""} == {opset}
        onnx.checker.check_model(model, full_check=True)
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        usual = onnxruntime.InferenceSession(str(run / "model.onnx"), providers=["CPUExecutionProvider"])
        arrays = {i.name: array_for(i) for i in session.get_inputs()}
        for mine, other in zip(session.run(None, arrays), usual.run(None, arrays)):
            np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


def array_for(value):
    """Three samples, of sizes that a named dimension may have."""
    shape = [d if isinstance(d, int) else 3 if d == "batch" else 12 for d in value.shape]
    if value.type == "tensor(string)":
        return np.full(shape, "basic")
    if value.type == "tensor(uint8)":
        return (np.arange(np.prod(shape)) * 37 % 251).reshape(shape).astype(np.uint8)
    if value.type == "tensor(int64)":
        return (np.arange(np.prod(shape)) % 5).reshape(shape)
    kind = np.float64 if value.type == "tensor(double)" else np.float32
    return np.linspace(-1, 2, int(np.prod(shape))).reshape(shape).astype(kind)


@pytest.fixture(scope="session")
def opset_runs(binary, tmp_path_factory):
    """Trained for a step each: pictures, a table with texts, sounds, texts."""
    import subprocess

    desk = tmp_path_factory.mktemp("opsets")
    write_samples(desk)
    recipes = {
        "pictures": '[data]\ntrain = "photos"\n[input]\nresize = 32\ncrop = 32\n[model]\nkind = "resnet18_cifar"\n',
        "attention": '[data]\ntrain = "photos"\n[input]\nresize = 32\ncrop = 32\n[model]\nkind = "vit"\ndepth = 1\n',
        "rows": '[data]\ntrain = "customers.csv"\n[output]\nkind = "class"\ncolumn = "left"\n',
        "sounds": '[data]\ntrain = "words"\n',
    }
    runs = {}
    for name, text in recipes.items():
        (desk / f"{name}.toml").write_text(text + "[train]\nsteps = 1\nbatch = 8\n")
        subprocess.run([binary, "train", f"{name}.toml", "--out", name], cwd=desk, check=True, capture_output=True)
        runs[name] = desk / name
    return runs


def test_opsets_that_cannot_be(millrace, opset_runs, tmp_path):
    run = opset_runs["pictures"]
    for opset in (7, 12, 26, 99):
        told = millrace("export", run, tmp_path / "m.onnx", "--opset", opset, code=1)
        assert "opsets 13 to 25" in told.stderr
        assert not (tmp_path / "m.onnx").exists()
    told = millrace("export", run, tmp_path / "m.onnx", "--opset", 17, "--pictures", "48x64", code=1)
    assert "resize needs opset 18, and 17 is asked for" in told.stderr
    millrace("export", run, tmp_path / "m.onnx", "--opset", 18, "--pictures", "48x64")
    told = millrace("export", run, tmp_path / "m.safetensors", "--opset", 18, code=1)
    assert "--opset is of an .onnx file" in told.stderr
