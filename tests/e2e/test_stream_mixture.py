"""Several streams in one training: mixed by weights that change while it runs, interrupted and resumed, with
conditions."""

import json
import shutil
import signal
import subprocess

import pytest
from test_train import assert_same_run, letters, start, wait_for_step  # noqa: F401

RECIPE = """
[data]
train = {{ ads = {ads}, news = "{news}" }}
weights = {{ ads = 0.7, news = 0.3 }}
stream = true
order = "shuffle-buffer 40"
epoch_samples = 300
test = "{letters}/test"
[input]
augment = ["random-shift 2"]
[model]
layers = ["conv 8 3", "batch-norm", "relu", "max-pool 4", "flatten", "linear 10"]
[train]
epochs = 4
batch = 20
checkpoint_steps = 7
keep_checkpoints = 1000
optimizer = {{ kind = "sgd", lr = 0.05 }}
"""


@pytest.fixture(scope="module")
def tars(letters, tmp_path_factory):  # noqa: F811
    """Two tars: the letters A to E (250), and F to J."""
    folder = tmp_path_factory.mktemp("tars")
    for name, classes in (("ads", "ABCDE"), ("news", "FGHIJ")):
        subprocess.run(["tar", "-C", letters / "train", "--sort=name", "-cf", folder / f"{name}.tar", *classes], check=True)
    return folder


@pytest.fixture(scope="module")
def recipe(letters, tars, tmp_path_factory):  # noqa: F811
    def write(ads=None):
        path = tmp_path_factory.mktemp("recipe") / "streams.toml"
        path.write_text(RECIPE.format(ads=json.dumps(ads or str(tars / "ads.tar")), news=tars / "news.tar", letters=letters))
        return path

    return write


@pytest.fixture(scope="module")
def whole(binary, recipe, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "whole"
    result = subprocess.run([binary, "train", recipe(), "--out", out], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "ads, news: a stream of pictures" in result.stdout
    return out


def why(millrace, run, step):
    return json.loads(millrace("data", "why", run, "--step", step, "--json").stdout)["samples"]


def test_the_streams_are_drawn_by_their_weights(millrace, tars, whole):
    samples = [sample for step in range(1, 31) for sample in why(millrace, whole, step)]
    ads = [sample for sample in samples if sample["name"].startswith(f"ads: {tars}/ads.tar:")]
    news = [sample for sample in samples if sample["name"].startswith(f"news: {tars}/news.tar:")]
    assert len(ads) + len(news) == len(samples) and abs(len(ads) / len(samples) - 0.7) < 0.06
    assert {sample["class"] for sample in ads} == set("ABCDE") and {sample["class"] for sample in news} == set("FGHIJ")
    # Every sample of a stream comes once before one comes again.
    assert len({sample["name"] for sample in ads[:250]}) == 250 and len({sample["name"] for sample in news}) == len(news)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_training_resumes_to_the_same_bits(binary, millrace, tars, recipe, whole, tmp_path, how):
    out = tmp_path / "run"
    process = start(binary, "train", recipe(f"pipe:gzip -c {tars}/ads.tar"), "--out", out)
    wait_for_step(process, out, 20)
    process.send_signal(how)
    process.communicate(timeout=60)
    if not (out / "model.onnx").exists():
        assert "going on from step" in millrace("train", out, "--resume").stdout
    assert_same_run(whole, out)


@pytest.mark.parametrize("kept", [0, 14, 35, 56])
def test_every_checkpoint_leads_to_the_same_end(millrace, tars, recipe, whole, tmp_path, kept):
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    for path in (out / "checkpoints").iterdir():
        if int(path.stem.removeprefix("step-")) > kept:
            path.unlink()
    (out / "model.onnx").unlink()
    assert f"going on from step {kept} of 60" in millrace("train", out, "--resume").stdout
    assert_same_run(whole, out)


def test_weights_change_while_it_runs_and_a_resume_replays_them(binary, millrace, tars, recipe, tmp_path):
    run = tmp_path / "run"
    pipe = recipe(f"pipe:cat {tars}/ads.tar")
    settings = ["train.steps=20000", "train.checkpoint_steps=50"]
    process = start(binary, "train", pipe, *settings, "--out", run)
    wait_for_step(process, run, 20)
    millrace("ctl", run, "data.weights.ads=0", "data.weights.news=2")
    at = [json.loads(line) for line in (run / "control.jsonl").read_text().splitlines()][0]["step"]
    wait_for_step(process, run, at + 20)
    assert "all of data.weights are 0" in millrace("ctl", run, "data.weights.news=0", code=1).stderr
    millrace("ctl", run, "data.weights.ads=1", "data.weights.news=3")
    last = json.loads((run / "control.jsonl").read_text().splitlines()[-1])["step"]
    millrace("ctl", run, f"train.steps={last + 3000}")
    process.kill()
    process.communicate()
    if not (run / "model.onnx").exists():
        millrace("train", run, "--resume")
    straight = tmp_path / "straight"
    straight.mkdir()
    shutil.copy(run / "control.jsonl", straight)
    millrace("train", pipe, *settings, "--out", straight)
    assert_same_run(run, straight)

    def share(steps):
        samples = [sample for step in steps for sample in why(millrace, run, step)]
        return sum(sample["name"].startswith("ads:") for sample in samples) / len(samples)

    assert share([at]) > 0.3 and share(range(at + 1, at + 6)) == 0


def test_a_condition_chooses_samples_of_streams(millrace, recipe, tmp_path):
    out = tmp_path / "run"
    millrace("train", recipe(), "data.where=label in ('A', 'C', 'F')", "train.steps=10", "--out", out)
    samples = [sample for step in range(1, 11) for sample in why(millrace, out, step)]
    assert {sample["class"] for sample in samples} == set("ACF")
    error = millrace("train", recipe(), "data.where=label = 'A'", "--out", tmp_path / "none", code=1).stderr
    assert "news.tar: no sample matches the condition label = 'A', of 250" in error and error.count("error:") == 1


@pytest.mark.parametrize(
    "change, message",
    [
        (["data.train={a='-', b='-'}", "data.weights={}"], "are both standard input"),
        (["data.weights.adds=1"], "is the weight of no source"),
        (["data.train.ads=pipe:false"], "the command failed (exit status 1)"),
        (["data.order=shuffle"], 'shuffle-buffer N"'),
        (["data.train.ads=${MILLRACE_DATA}"], "is a folder"),
    ],
)
def test_what_a_mixture_of_streams_cannot_is_said(millrace, recipe, letters, tmp_path, change, message):  # noqa: F811
    error = millrace("train", recipe(), *change, "--out", tmp_path / "run", code=1, env={"MILLRACE_DATA": str(letters)}).stderr
    assert message in error, error
