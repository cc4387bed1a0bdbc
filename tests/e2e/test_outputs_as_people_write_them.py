"""Where people point outputs: devices, pipes, links, files that are there, and sources themselves."""

import csv
import gzip
import io
import json
import os
import re
import resource
import shutil
import stat
import subprocess
import sys
import threading

import numpy as np
import onnx
import pyarrow.parquet
import pytest
from PIL import Image


@pytest.fixture(scope="module")
def desk(binary, tmp_path_factory):
    """A table of 60 rows, pictures, texts, and a small run."""
    folder = tmp_path_factory.mktemp("outputs")
    draw = np.random.default_rng(3)
    with open(folder / "x.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "kind"])
        for i in range(60):
            writer.writerow([f"{draw.normal():.4f}", f"{draw.normal():.4f}", "uvw"[i % 3], "xy"[i % 2]])
    for i in range(24):
        path = folder / "pictures" / "xy"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw.integers(0, 255, (32, 32, 3), np.uint8)).save(path)
    rows = ["label\ttext"] + [f"{'ab'[i % 2]}\t" + " ".join(draw.choice(["king", "land", "sings", "horse"], 6)) for i in range(40)]
    (folder / "texts.tsv").write_text("\n".join(rows) + "\n")
    (folder / "corpus.txt").write_text("the king of no land sings to his horse and never sleeps\n" * 60)
    (folder / "r.toml").write_text(
        f'[data]\ntrain = "{folder}/x.csv"\n[output]\ncolumn = "kind"\n[model]\nkind = "table"\nwidth = 4\n'
        "[train]\nsteps = 2\nbatch = 8\n"
    )
    subprocess.run([binary, "train", folder / "r.toml", "--out", folder / "run"], check=True, capture_output=True)
    return folder


# ---- what is not a regular file


def device_of(folder, name, minor):
    """A device of one's own where that can be made: root could lose the machine's."""
    if os.geteuid() != 0:
        return f"/dev/{name}"
    try:
        os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        with open(folder / name, "wb"):
            return folder / name
    except OSError as error:
        pytest.skip(f"no device can be made here: {error}")


@pytest.mark.parametrize("name, minor", [("null", 3), ("full", 7)])
def test_a_device_is_written_to_and_stays(millrace, desk, tmp_path, name, minor):
    device = device_of(tmp_path, name, minor)
    before = os.stat(device)
    result = millrace("export", desk / "run", device, code=None)
    after = os.stat(device)
    assert stat.S_ISCHR(after.st_mode) and (after.st_rdev, after.st_ino) == (before.st_rdev, before.st_ino)
    assert result.returncode == (1 if name == "full" else 0)
    if name == "full":
        assert "full: cannot write it: disk full" in result.stderr


def test_a_link_stays_and_its_target_is_replaced(millrace, desk, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there/model.onnx").write_text("old")
    (tmp_path / "link.onnx").symlink_to("there/model.onnx")
    (tmp_path / "new.onnx").symlink_to("there/new.onnx")
    for name in ["link.onnx", "new.onnx"]:
        millrace("export", desk / "run", tmp_path / name, "--force")
        assert (tmp_path / name).is_symlink()
    for name in ["model.onnx", "new.onnx"]:
        onnx.checker.check_model(onnx.load(tmp_path / "there" / name))
    (tmp_path / "circle").symlink_to("circle")
    assert "circle: cannot write it" in millrace("export", desk / "run", tmp_path / "circle", code=1).stderr
    assert (tmp_path / "circle").is_symlink()


def test_a_pipe_gets_the_bytes(millrace, desk, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    millrace("export", desk / "run", tmp_path / "pipe")
    reader.join(60)
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    onnx.checker.check_model(onnx.load_from_string(got[0]))
    assert got[0] == (desk / "run/model.onnx").read_bytes()


def test_standard_output_is_an_output(binary, desk, tmp_path):
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")  # as /dev/stdout
    result = subprocess.run([binary, "export", desk / "run", tmp_path / "stdout"], capture_output=True)
    assert result.returncode == 0 and result.stdout == (desk / "run/model.onnx").read_bytes()


def test_a_folder_is_not_replaced(millrace, desk, tmp_path):
    assert "is a folder" in millrace("export", desk / "run", tmp_path, code=1).stderr


def test_export_replaces_models_and_by_force_what_is_none(millrace, desk, tmp_path):
    wanted = (desk / "run/model.onnx").read_bytes()
    other = tmp_path / "theirs.onnx"
    nodes = [onnx.helper.make_node("Identity", ["x"], ["y"])]
    ends = [[onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1])] for name in "xy"]
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", *ends)), other)
    (tmp_path / "empty.onnx").touch()
    for name in ["theirs.onnx", "empty.onnx", "theirs.onnx"]:
        millrace("export", desk / "run", tmp_path / name)
        assert (tmp_path / name).read_bytes() == wanted
    for name, content in [
        ("notes.onnx", b"my notes\n"),
        ("picture.png", (desk / "pictures/x/0.png").read_bytes()),
        ("r.toml", (desk / "r.toml").read_bytes()),
        ("cut.onnx", wanted[:-9]),
        ("weights.safetensors", next((desk / "run/checkpoints").iterdir()).read_bytes()),
    ]:
        (tmp_path / name).write_bytes(content)
        error = millrace("export", desk / "run", tmp_path / name, code=1).stderr
        assert f"{name}: is there already and is no ONNX model; --force replaces it" in error
        assert (tmp_path / name).read_bytes() == content
    millrace("export", desk / "run", tmp_path / "notes.onnx", "--force")
    assert (tmp_path / "notes.onnx").read_bytes() == wanted


def test_export_never_replaces_what_a_run_is_made_of(millrace, desk, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(desk / "run", run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    (tmp_path / "link.onnx").symlink_to("run/recipe.toml")
    for out in [path for path in before if path.suffix != ".onnx"] + [tmp_path / "link.onnx"]:
        for model, force in [(run, []), (desk / "run", ["--force"])]:
            assert "is a file of the run" in millrace("export", model, out, *force, code=1).stderr
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    millrace("export", run, run / "model.onnx")
    millrace("export", run, run / "new")
    onnx.checker.check_model(onnx.load(run / "new"))


# ---- "-"


def piped(binary, folder, *arguments, **streams):
    return subprocess.run([binary, *map(str, arguments)], cwd=folder, stderr=subprocess.PIPE, **{"stdout": subprocess.PIPE, **streams})


def test_a_dash_is_standard_output(binary, desk, tmp_path):
    result = piped(binary, tmp_path, "export", desk / "run", "-")
    assert result.returncode == 0 and result.stdout == (desk / "run/model.onnx").read_bytes()
    rows = list(csv.DictReader(open(desk / "x.csv")))
    for format, read in [
        ("jsonl", lambda text: [json.loads(line)["kind"] for line in text.decode().splitlines()]),
        ("csv", lambda text: [row["kind"] for row in csv.DictReader(io.StringIO(text.decode()))]),
        ("parquet", lambda text: pyarrow.parquet.read_table(io.BytesIO(text))["kind"].to_pylist()),
    ]:
        result = piped(binary, tmp_path, "data", "convert", desk / "x.csv", "-", "--format", format)
        assert result.returncode == 0 and b"60 samples" in result.stderr
        assert read(result.stdout) == [row["kind"] for row in rows]
    # Also where that is a file, which goes on behind what it has.
    with open(tmp_path / "all.jsonl", "ab") as file:
        file.write(b"first\n")
        file.flush()
        assert piped(binary, tmp_path, "data", "convert", desk / "x.csv", "-", "--format", "jsonl", stdout=file).returncode == 0
    text = (tmp_path / "all.jsonl").read_text().splitlines()
    assert text[0] == "first" and len(text) == 61
    assert [path.name for path in tmp_path.iterdir()] == ["all.jsonl"]


def test_a_dash_that_cannot_be_standard_output_is_refused(binary, desk, tmp_path):
    for arguments, why in [
        (["data", "convert", desk / "pictures", "-", "--format", "mds"], "mds is not written from its beginning to its end"),
        (["data", "convert", desk / "pictures", "-", "--format", "folder"], "folder is not written"),
        (["pack", desk / "pictures", "-"], "OUT -: cannot be standard output"),
        (["data", "show", desk / "run", "--out", "-"], "--out -: cannot be standard output"),
        (["explain", desk / "r.toml", "--svg", "-"], "--svg -: cannot be standard output"),
        (["profile", desk / "r.toml", "--html", "-"], "--html -: cannot be standard output"),
        (["train", desk / "r.toml", "--out", "-"], "--out -: cannot be standard output"),
        (["letters", "-"], "OUT -: cannot be standard output"),
    ]:
        result = piped(binary, tmp_path, *arguments)
        assert result.returncode == 1 and why in result.stderr.decode(), result.stderr
    assert list(tmp_path.iterdir()) == []


# ---- convert and pack


def test_convert_never_overwrites_its_source(millrace, desk, tmp_path):
    source = tmp_path / "x.csv"
    source.write_text((desk / "x.csv").read_text())
    os.link(source, tmp_path / "hard.csv")
    (tmp_path / "soft.csv").symlink_to("x.csv")
    before = source.read_bytes()
    for out in [source, tmp_path / "hard.csv", tmp_path / "soft.csv", tmp_path / ".." / tmp_path.name / "x.csv"]:
        for force in [[], ["--force"]]:
            error = millrace("data", "convert", source, out, "--format", "jsonl", *force, code=1).stderr
            assert f"is a file of {source} itself" in error
    assert source.read_bytes() == before and (tmp_path / "soft.csv").is_symlink()
    # A file of a folder that is the source, and the one that goes with it.
    folder = tmp_path / "pictures"
    (folder / "a").mkdir(parents=True)
    Image.new("RGB", (4, 4)).save(folder / "a/1.png")
    assert "itself" in millrace("data", "convert", folder, folder / "a/1.png", "--format", "webdataset", "--force", code=1).stderr


def test_convert_replaces_what_is_there_only_by_force(millrace, desk, tmp_path):
    out = tmp_path / "mine.jsonl"
    out.write_text("my notes\n")
    error = millrace("data", "convert", desk / "x.csv", out, "--format", "jsonl", code=1).stderr
    assert "mine.jsonl: is there already; --force replaces it" in error
    assert out.read_text() == "my notes\n"
    millrace("data", "convert", desk / "x.csv", out, "--format", "jsonl", "--force")
    assert len(out.read_text().splitlines()) == 60
    # Also what a format writes beside it.
    millrace("data", "convert", desk / "pictures", tmp_path / "p.rec", "--format", "recordio", "--columns", "image")
    (tmp_path / "p.rec").unlink()
    assert "p.idx: is there already" in millrace(
        "data", "convert", desk / "pictures", tmp_path / "p.rec", "--format", "recordio", "--columns", "image", code=1
    ).stderr
    null = device_of(tmp_path, "null", 3)
    millrace("data", "convert", desk / "x.csv", null, "--format", "csv")
    assert stat.S_ISCHR(os.stat(null).st_mode)


def test_pack_spares_other_files_and_its_source(millrace, desk, tmp_path):
    out = tmp_path / "packed"
    millrace("pack", desk / "pictures", out, "--name", "train")
    first = (out / "train-000000.tar").read_bytes()
    millrace("pack", desk / "pictures", out, "--name", "train")  # its own shards give way
    error = millrace("pack", out / "train-000000.tar", out, "--name", "train", "--force", code=1).stderr
    assert "train-000000.tar: is a file of" in error and "itself" in error
    assert (out / "train-000000.tar").read_bytes() == first
    (out / "notes-000001.tar").write_text("not a shard")
    (out / "other.json").write_text('{"mine": 1}')
    for name, file in [("notes", "notes-000001.tar"), ("other", "other.json")]:
        assert f"{file}: is there already" in millrace("pack", desk / "pictures", out, "--name", name, code=1).stderr
    assert (out / "notes-000001.tar").read_text() == "not a shard" and (out / "other.json").read_text() == '{"mine": 1}'
    millrace("pack", desk / "pictures", out, "--name", "notes", "--force")
    assert (out / "notes-000000.tar").exists()


def test_a_temporary_file_that_cannot_be_kept_is_said_once(binary, tmp_path):
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1.25,2.5\n" * 1_000_000, 1))

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    result = subprocess.run([binary, "data", "head", tmp_path / "d.csv.gz"], capture_output=True, text=True, preexec_fn=limited)
    assert result.returncode == 1
    assert f": cannot keep the data of {tmp_path}/d.csv.gz: File too large." in result.stderr and "cannot cannot" not in result.stderr


# ---- ONNX

PICTURE = '[data]\ntrain = "{0}/pictures"\n[model]\nkind = "{1}"\n'
TABLE = '[data]\ntrain = "{0}/x.csv"\n[output]\ncolumn = "kind"\n[model]\nkind = "{1}"\n'
NUMBER = '[data]\ntrain = "{0}/x.csv"\n[output]\ncolumn = "a"\nkind = "number"\n'
TEXT = '[data]\ntrain = "{0}/texts.tsv"\n[input]\nkind = "text"\nlength = 64\n[model]\nkind = "{1}"\n'
TOKENS = '[data]\ntrain = "{0}/corpus.txt"\n[input]\nkind = "tokens"\nlength = 32\n[model]\nkind = "{1}"\nwidth = 16\n'
LAYERS = (
    '[data]\ntrain = "{0}/pictures"\n[model]\nlayers = ["conv 8 3", "batch-norm", "relu", "max-pool 2", "residual 8 3", '
    '"global-avg-pool", "linear 2"]\n'
)
RECIPES = {
    **{name: PICTURE for name in ["airbench", "convnet", "lenet", "mobilenet_v2", "resnet18_cifar", "resnet18", "vit"]},
    "mlp": TABLE.replace("[output]", '[input]\ncolumns = ["a", "b"]\n[output]'),
    **{name: TABLE for name in ["table", "boosting", "fm", "linear", "naive_bayes", "nearest_neighbours"]},
    **{name: TEXT for name in ["encoder", "bag", "gru"]},
    "gpt": TOKENS,
    "number": NUMBER,
    "layers": LAYERS,
}

LOAD = """
import sys, onnxruntime
options = onnxruntime.SessionOptions()
options.log_severity_level = 2
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
"""


def unused(model):
    """Initialisers that no node reads, in any graph of the model."""
    read, own = set(), []

    def visit(graph):
        own.extend(tensor.name for tensor in graph.initializer)
        read.update(output.name for output in graph.output)
        for node in graph.node:
            read.update(node.input)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    visit(attribute.g)

    visit(model.graph)
    return [name for name in own if name not in read]


@pytest.mark.parametrize("name", RECIPES)
def test_exports_load_without_a_warning(millrace, desk, tmp_path, name):
    recipe = tmp_path / "r.toml"
    recipe.write_text(RECIPES[name].format(desk, name) + "[train]\nsteps = 1\nbatch = 4\n")
    millrace("train", recipe, "--out", tmp_path / "run")
    path = tmp_path / "run/model.onnx"
    assert unused(onnx.load(path)) == []
    result = subprocess.run([sys.executable, "-c", LOAD, path], capture_output=True, text=True)
    assert result.returncode == 0 and result.stderr == "", result.stderr


def test_all_small_architectures_are_exported_above(millrace):
    """A new architecture is to be listed here, too; those of a gigabyte and their likes are left to their
    small kin."""
    listed = re.search(r"Models \(model.kind\), by what they take:\n((?:  .*\n)+)", millrace("train", "--help").stdout)[1]
    kinds = {word for line in listed.splitlines() for word in re.split(r"[,:]? +", line.split(":", 1)[1]) if word}
    large = {"bert_base", "bert_base_14", "minilm", "gpt_mini", "resnet50", "lstm", "dlrm", "bert", "bradley_terry"}
    assert kinds - large - set(RECIPES) == set()


def test_names_of_classes_stand_over_their_columns_whatever_they_begin_with(millrace, tmp_path):
    names = ["<=50K", ">50K", "a\tb"]
    with open(tmp_path / "rows.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["x", "y", "income"])
        rows.writerows([i % 3 + i / 1000, i * 7 % 11, names[i % 3]] for i in range(240))
    (tmp_path / "r.toml").write_text(f'[data]\ntrain = "{tmp_path}/rows.csv"\ntest_share = 0.3\n[output]\ncolumn = "income"\n[train]\nepochs = 1\nbatch = 16\n')
    millrace("train", tmp_path / "r.toml", "--no-check", "--out", tmp_path / "run")
    title = next(line for line in millrace("eval", tmp_path / "run").stdout.splitlines() if "true \\ told" in line)
    assert title.split("told", 1)[1].split() == ["<=50K", ">50K", "a\\tb"]
