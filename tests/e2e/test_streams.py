"""Training on streams: pipes and standard input that begin before they end, fail, stall, and are resumed."""

import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tarfile
import time

import pytest
from test_train import assert_same_run, letters, metric_lines, start, steps_logged, wait_for_step  # noqa: F401

RECIPE = """
[data]
train = {train}
stream = true
order = "shuffle-buffer 60"
epoch_samples = 300
test = "{letters}/test"
[input]
kind = "picture"
augment = ["random-shift 2"]
[output]
kind = "class"
[model]
layers = ["conv 8 3", "batch-norm", "relu", "max-pool 4", "flatten", "linear 10"]
[train]
epochs = 3
batch = 20
checkpoint_steps = 7
keep_checkpoints = 100
optimizer = {{ kind = "sgd", lr = 0.05 }}
"""


@pytest.fixture(scope="module")
def shard(letters, tmp_path_factory):  # noqa: F811
    """A tar of the training letters; epochs of 300 are not whole passes through its 500."""
    path = tmp_path_factory.mktemp("streams") / "letters.tar"
    subprocess.run(["tar", "-C", letters / "train", "--sort=name", "-cf", path, "."], check=True)
    return path


@pytest.fixture(scope="module")
def write_recipe(letters, tmp_path_factory):  # noqa: F811
    def write(train):
        path = tmp_path_factory.mktemp("recipe") / "stream.toml"
        path.write_text(RECIPE.format(train=json.dumps(train), letters=letters))
        return path

    return write


@pytest.fixture(scope="module")
def whole(binary, shard, write_recipe, tmp_path_factory):
    """An uninterrupted run on the file."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    result = subprocess.run([binary, "train", write_recipe(str(shard)), "--out", out], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "a stream of pictures" in result.stdout
    return out


def test_a_killed_training_on_a_pipe_resumes_to_the_same_bits(binary, millrace, shard, write_recipe, whole, tmp_path):
    process = start(binary, "train", write_recipe(f"pipe:cat {shard}"), "--out", tmp_path / "run")
    wait_for_step(process, tmp_path / "run", 10)
    process.kill()
    process.communicate()
    if not (tmp_path / "run/model.onnx").exists():
        millrace("train", tmp_path / "run", "--resume")
    assert_same_run(whole, tmp_path / "run")


@pytest.mark.parametrize("kept", [0, 7, 14, 15, 35, 42])
def test_every_checkpoint_leads_to_the_same_end(millrace, shard, write_recipe, whole, tmp_path, kept):
    out = tmp_path / "run"
    millrace("train", write_recipe(f"pipe:gzip -c {shard}"), "--out", out)
    assert_same_run(whole, out)
    for path in (out / "checkpoints").iterdir():
        if int(path.stem.removeprefix("step-")) > kept:
            path.unlink()
    (out / "model.onnx").unlink()
    text = millrace("train", out, "--resume").stdout
    assert f"going on from step {kept} of 45" in text
    assert_same_run(whole, out)


def test_standard_input_trains_and_is_given_again_to_resume(binary, shard, write_recipe, tmp_path):
    def train(*arguments):
        cat = subprocess.Popen(["cat", shard], stdout=subprocess.PIPE)
        result = subprocess.run([binary, "train", *arguments], stdin=cat.stdout, capture_output=True, text=True, timeout=240)
        cat.stdout.close()
        cat.wait()
        return result

    recipe = write_recipe("-")
    result = train(recipe, "train.epochs=1", "--out", tmp_path / "one")
    assert result.returncode == 0, result.stderr
    # 500 letters are not 900.
    result = train(recipe, "--out", tmp_path / "more")
    assert result.returncode == 1
    assert "standard input cannot be read a second time" in result.stderr and "is saved" in result.stderr
    assert steps_logged(tmp_path / "more") == 25
    for path in (tmp_path / "one/checkpoints").iterdir():
        if path.stem > "step-00000007":
            path.unlink()
    before = metric_lines(tmp_path / "one")
    result = train(tmp_path / "one", "--resume")
    assert result.returncode == 0 and "going on from step 7 of 15" in result.stdout
    assert metric_lines(tmp_path / "one") == before


def test_it_trains_before_the_stream_ends_and_a_stall_can_be_interrupted(binary, millrace, shard, write_recipe, whole, tmp_path):
    gate, out = tmp_path / "gate", tmp_path / "run"
    cut = shard.stat().st_size // 2 // 512 * 512
    command = f"pipe:head -c {cut} {shard}; [ -e {gate} ] || sleep 1000; tail -c +{cut + 1} {shard}"
    process = start(binary, "train", write_recipe(command), "--out", out)
    wait_for_step(process, out, 5)  # with half of the stream
    # The rest of the half, then nothing comes.
    process.send_signal(signal.SIGINT)
    text = process.communicate(timeout=60)[0]
    assert process.returncode == 130, text
    assert "stopped at step" in text and "--resume" in text
    gate.touch()
    millrace("train", out, "--resume")
    assert_same_run(whole, out)


def test_a_killed_training_leaves_no_command_behind(binary, shard, write_recipe, tmp_path):
    out, pid = tmp_path / "run", tmp_path / "pid"
    # The shell waits for a command of its own, which has to end, too.
    command = f"pipe:cat {shard}; sh -c 'echo $$ > {pid}; sleep 1000; true'"
    process = start(binary, "train", write_recipe(command), "--out", out)
    wait_for_step(process, out, 5)
    end = time.monotonic() + 60
    while not (pid.exists() and pid.read_text().strip()):
        assert time.monotonic() < end
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=60)  # until nobody has its output open
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < end:
            os.kill(int(pid.read_text()), 0)
            time.sleep(0.01)


@pytest.mark.parametrize(
    "ending, message",
    [("exit 7", "the command failed (exit status 7)"), ("kill -9 $$", "the command failed (signal 9)"), ("true", "the tar ends within")],
)
def test_a_command_that_fails_is_one_message_and_resumes(millrace, shard, write_recipe, whole, tmp_path, ending, message):
    gate, out = tmp_path / "gate", tmp_path / "run"
    recipe = write_recipe(f"pipe:if [ -e {gate} ]; then cat {shard}; else head -c 200000 {shard}; {ending}; fi")
    error = millrace("train", recipe, "--out", out, code=1).stderr
    assert message in error and error.count("error:") == 1 and len(error.strip().splitlines()) == 2
    assert "is saved: when the data is there again, --resume goes on" in error
    done = steps_logged(out)
    assert 0 < done < 45
    error = millrace("train", out, "--resume", code=1).stderr
    assert message in error and steps_logged(out) == done
    gate.touch()
    assert f"going on from step {done} of 45" in millrace("train", out, "--resume").stdout
    assert_same_run(whole, out)


def test_an_endless_stream_trains_so_many_steps(millrace, shard, write_recipe, tmp_path):
    recipe = write_recipe(f"pipe:while cat {shard}; do :; done")
    millrace("train", recipe, "train.steps=60", "data.epoch_samples=0", "--out", tmp_path / "run")
    assert steps_logged(tmp_path / "run") == 60


def test_why_names_the_samples_of_a_step(millrace, shard, whole):
    batches = [json.loads(millrace("data", "why", whole, "--step", step, "--json").stdout)["samples"] for step in range(1, 26)]
    names = [sample["name"] for batch in batches for sample in batch]
    assert len(set(names)) == 500 and all(name.startswith(f"{shard}:") for name in names)  # one pass
    assert all(sample["class"] in "ABCDEFGHIJ" for batch in batches for sample in batch)


def test_bad_samples_of_a_stream_are_left_out_until_they_are_too_many(millrace, shard, letters, write_recipe, tmp_path):  # noqa: F811
    broken = tmp_path / "train"
    shutil.copytree(letters / "train", broken)
    pictures = sorted(broken.rglob("*.jpg"))
    for path in pictures[::100]:
        path.write_bytes(b"no picture")
    command = f"pipe:tar -C {broken} --sort=name -c ."
    millrace("train", write_recipe(command), "train.epochs=1", "--out", tmp_path / "run")
    listed = [json.loads(line) for line in (tmp_path / "run/bad_samples.jsonl").read_text().splitlines()]
    assert 3 <= len(listed) <= 5 and all("JPEG" in bad["why"] or "decoded" in bad["why"] or bad["why"] for bad in listed)
    error = millrace("train", write_recipe(command), "data.most_bad=2", "--out", tmp_path / "strict", code=1).stderr
    assert "more than data.most_bad = 2 allows" in error and "--resume" in error


def test_a_limit_of_memory_changes_no_bit_or_stops_where_it_can_go_on(millrace, shard, letters, write_recipe, whole, tmp_path):  # noqa: F811
    millrace("train", write_recipe(str(shard)), "data.memory=6MB", "--out", tmp_path / "run")
    assert_same_run(whole, tmp_path / "run")

    def fault(memory, *more):
        return millrace("train", write_recipe(str(shard)), f"data.memory={memory}", *more, "--out", tmp_path / "small", code=1).stderr

    assert "a batch of 20 with a picture ahead" in fault("100000")
    error = fault("900000", "data.order=shuffle-buffer 400")
    assert "data.memory leaves" in error and "of the 400 in the shuffle buffer take" in error
    assert 60 < int(re.search(r'"shuffle-buffer (\d+)"', error)[1]) < 400

    # Samples of the second half are larger: the run stops there, and goes on with a larger limit to the same
    # bits.
    growing = tmp_path / "growing.tar"
    with tarfile.open(growing, "w") as tar:
        for i, path in enumerate(sorted((letters / "train").rglob("*.jpg"))[::2]):
            for name, content in (
                (f"{i:04}.jpg", path.read_bytes()),
                (f"{i:04}.cls", str(ord(path.parent.name) - ord("A")).encode()),
                (f"{i:04}.bin", bytes(1000 if i < 125 else 20_000)),
            ):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    free, run = tmp_path / "free", tmp_path / "grows"
    millrace("train", write_recipe(str(growing)), "data.memory=20MB", "--out", free)
    error = millrace("train", write_recipe(str(growing)), "data.memory=1.6MB", "--out", run, code=1).stderr
    assert "60 of the 60 in the shuffle buffer take" in error and "is saved" in error
    assert 0 < steps_logged(run) < 15
    recipe = run / "recipe.toml"
    recipe.write_text(recipe.read_text().replace('"1.6MB"', '"20MB"'))
    millrace("train", run, "--resume")
    assert_same_run(free, run)


@pytest.mark.parametrize(
    "change, message",
    [
        (["data.order=shuffle"], 'shuffle-buffer N"'),
        (["data.stream=false"], "is for streams: set data.stream = true"),
        (["data.epoch_samples=0"], "a stream has no epochs of its own"),
        (["data.test="], "classes of a stream must be known"),
        (["data.where=label in (1)"], "'label' holds texts"),
        (["data.where=label = 'Z'"], "no sample matches the condition label = 'Z', of 500"),
        (["data.sample_weight=weight"], "there is no column 'weight'"),
        (["data.train=pipe:false"], "the command failed (exit status 1)"),
        (["data.train=pipe:echo hello, world"], "echo hello, world: "),
        (["output.classes=[A, B]", "data.test=", "data.most_bad=0", "model.layers=[flatten, linear 2]"], "does not know (it knows A, B)"),
    ],
)
def test_what_a_stream_cannot_is_said_before_training(millrace, shard, write_recipe, tmp_path, change, message):
    error = millrace("train", write_recipe(str(shard)), *change, "--out", tmp_path / "run", code=1).stderr
    assert message in error, error


def test_a_sample_of_a_stream(millrace, binary, tmp_path):
    lines = "".join(f'{{"n": {n}}}\n' for n in range(5000))
    run = subprocess.run([binary, "data", "head", "-", "--sample", "50", "--json"], input=lines, capture_output=True, text=True)
    head = json.loads(run.stdout)
    numbers = [row["n"] for row in head["head"]]
    assert head["samples"] == 5000 and len(set(numbers)) == 50 and numbers == sorted(numbers)
    assert 1500 < sum(numbers) / 50 < 3500
    assert "TFRecord, tar, JSON lines, plain text, CSV or TSV" in millrace("data", "head", "pipe:printf '\\001\\000'", "--sample", 3, code=1).stderr


def test_ranks_see_together_the_order_of_one(millrace, shard):
    def head(*arguments):
        text = millrace("data", "head", shard, "--order", "shuffle", "-n", 1000, "--json", *arguments).stdout
        return [row["__key__"] for row in json.loads(text)["head"]]

    alone = head()
    assert len(set(alone)) == 500
    for ranks in (2, 3, 8):
        assert [head("--rank", f"{rank}/{ranks}") for rank in range(ranks)] == [alone[rank::ranks] for rank in range(ranks)]


def test_ranks_of_a_stream_share_what_it_gives(millrace, shard):
    def head(*arguments):
        text = millrace("data", "head", f"pipe:cat {shard}", "--stream", "-n", 1000, "--json", *arguments).stdout
        return [row["__key__"] for row in json.loads(text)["head"]]

    plain = head()
    assert len(set(plain)) == 500
    for order in ([], ["--order", "shuffle-buffer 60"]):
        alone = head(*order)
        assert set(alone) == set(plain) and (alone == plain) == (not order)
        for ranks in (2, 3, 8):
            assert [head(*order, "--rank", f"{rank}/{ranks}") for rank in range(ranks)] == [alone[rank::ranks] for rank in range(ranks)]
    chosen = head("--where", "label = 'C'")
    assert chosen == [key for key in plain if key.startswith("C/")] and len(chosen) == 50
    endless = millrace("data", "head", f"pipe:while cat {shard}; do :; done", "--stream", "-n", 3, "--json").stdout
    assert [row["__key__"] for row in json.loads(endless)["head"]] == plain[:3]
    assert "--where goes with --stream" in millrace("data", "head", shard, "--where", "label = 'C'", code=1).stderr


@pytest.mark.parametrize("missing", ["", "NA"])
def test_columns_of_a_stream_are_what_many_rows_show(millrace, tmp_path, missing):
    """The first row has no number where others have one, and yes or no are no categories of one row."""
    draw = random.Random(3)
    for file in ("rows", "others"):
        rows = [(draw.random(), draw.choice(["yes", "no"])) for _ in range(600)]
        lines = [f"{missing if i % 9 == 0 else round(x, 4)},{flag},{'b' if (x > 0.5) == (flag == 'yes') else 'a'}" for i, (x, flag) in enumerate(rows)]
        (tmp_path / f"{file}.csv").write_text("x,flag,y\n" + "\n".join(lines) + "\n")
    recipe = ('[data]\ntrain = "rows.csv"\n{stream}[input]\nkind = "table"\n[output]\nkind = "class"\ncolumn = "y"\nclasses = ["a", "b"]\n'
              '[train]\nsteps = 200\nbatch = 32\noptimizer = {{ kind = "adamw", lr = 0.01 }}\n')
    (tmp_path / "streamed.toml").write_text(recipe.format(stream='stream = true\norder = "shuffle-buffer 200"\nepoch_samples = 600\n'))
    (tmp_path / "whole.toml").write_text(recipe.format(stream=""))
    shares = {}
    for name in ("streamed", "whole"):
        millrace("train", f"{name}.toml", "--out", name, "--no-check", cwd=tmp_path)
        shares[name] = json.loads(millrace("eval", name, "others.csv", "--json", cwd=tmp_path).stdout)["accuracy"]
    assert shares["streamed"] > 0.9 and shares["streamed"] > shares["whole"] - 0.05, shares
