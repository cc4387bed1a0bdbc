"""How people run trainings: closing terminals, going on longer, moving about, and mistyping."""

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios
import time

import numpy as np
import pytest
from conftest import ROOT
from PIL import Image
from test_train import (  # noqa: F401
    LONG, assert_same_run, letters, long_whole, metric_lines, recipe, start, steps_logged, wait_for_step, whole)


def step_of(run):
    return max(int(path.stem[5:]) for path in (run / "checkpoints").glob("step-*"))


# ---- signals


@pytest.fixture(autouse=True)
def hearing():
    """Under nohup tests would not hear a terminal close, and neither would what they start."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def test_hanging_up_saves_as_ctrl_c_does(binary, recipe, long_whole, millrace, tmp_path):
    run = tmp_path / "run"
    process = start(binary, "train", recipe, LONG, "--out", run)
    wait_for_step(process, run, 8)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGHUP)  # as a terminal and its shell do
    text = process.communicate(timeout=60)[0]
    assert process.returncode == 130, text
    assert "everything is saved" in text and step_of(run) == steps_logged(run)
    millrace("train", run, "--resume")
    assert_same_run(long_whole, run)


def test_a_reader_that_goes_away_loses_nothing(binary, recipe, long_whole, millrace, tmp_path):
    run = tmp_path / "run"
    process = start(binary, "train", recipe, LONG, "--out", run)
    wait_for_step(process, run, 8)
    process.stdout.close()  # as head does when it has its lines
    assert process.wait(timeout=60) == 130 and step_of(run) == steps_logged(run)
    millrace("train", run, "--resume")
    assert_same_run(long_whole, run)


def test_a_terminal_that_closes_loses_nothing(binary, recipe, tmp_path):
    run = tmp_path / "run"
    child, terminal = pty.fork()
    if child == 0:
        os.execv(binary, [str(binary), "train", str(recipe), "train.epochs=200", "--out", str(run)])
    end = time.monotonic() + 120
    while steps_logged(run) < 8:
        assert time.monotonic() < end
        if b"" == os.read(terminal, 65536):
            break
    os.close(terminal)
    os.waitpid(child, 0)
    assert step_of(run) == steps_logged(run) >= 8


def test_nohup_is_heard(binary, recipe, tmp_path):
    run = tmp_path / "run"
    process = subprocess.Popen(
        ["nohup", binary, "train", recipe, "--out", run], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    wait_for_step(process, run, 8)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=120)
    assert process.returncode == 0 and steps_logged(run) == 75


# ---- mistakes


def refusal(millrace, recipe, tmp_path, *words, text=None):
    path = tmp_path / "mistake.toml"
    path.write_text(recipe.read_text() if text is None else text)
    return millrace("train", path, *words, "--out", tmp_path / "none", code=1, timeout=60).stderr


def test_absurd_models_are_refused_before_time_is_spent(millrace, recipe, tmp_path):
    error = refusal(millrace, recipe, tmp_path, "model.layers=[conv 100000000 3, flatten, linear 10]")
    assert "GB" in error and "this machine has" in error
    error = refusal(millrace, recipe, tmp_path, "model.layers=[flatten, linear 10000000000, linear 10]")
    assert "parameters" in error and "this machine has" in error
    deep = ", ".join(["conv 32 3, relu"] * 100)
    error = refusal(millrace, recipe, tmp_path, "input.resize=512", "train.batch=64", "train.freeze=[]", f"model.layers=[{deep}, global-avg-pool, linear 10]")
    assert "too large for this machine: a step of training keeps" in error
    # Half of the memory for weights leaves none for Adam's two moments of each.
    machine = float(re.search(r"this machine has ([\d.]+) GB", refusal(millrace, recipe, tmp_path, "model.layers=[flatten, linear 10000000000, linear 10]"))[1])
    width = int(machine * 1e9 / 2 / 4 / 10_000)
    wide = f"model.layers=[global-avg-pool, linear 10000, linear {width}, linear 10]"
    error = refusal(millrace, recipe, tmp_path, wide, "train.freeze=[]", "train.optimizer=adamw")
    assert "what adamw keeps for them" in error, error
    # What is too large is named, not what comes last.
    error = refusal(millrace, recipe, tmp_path, "model.layers=[flatten, linear 30, linear 10000000000, relu, linear 10]")
    assert "of layer 3, 'linear 10000000000'" in error and "linear 10'" not in error.replace("linear 10000000000'", "")
    error = refusal(millrace, recipe, tmp_path, "train.batch=64", "model.layers=[conv 8 3, relu, conv 10000000 1, global-avg-pool, linear 10]")
    assert error.startswith("error: layer 3, 'conv 10000000 1' makes "), error
    many = ", ".join(["relu"] * 100_000)
    text = recipe.read_text().replace('layers = ["conv 8 3 stride=2"', f'layers = [{many.replace("relu", chr(34) + "relu" + chr(34))}, "conv 8 3"')
    assert "100007 layers, and at most" in refusal(millrace, recipe, tmp_path, text=text)


def test_keys_of_very_many_parts_are_refused(millrace, recipe, tmp_path):
    for text in [".".join(["a"] * 500_000) + " = 1\n", "[" + ".".join(["a"] * 500_000) + "]\n", "[train]\n" + "a." * 500_000 + "b = 1\n"]:
        assert "none of a recipe has more than 8" in refusal(millrace, recipe, tmp_path, text=text)
    assert "none of a recipe has more than 8" in refusal(millrace, recipe, tmp_path, "a." * 50_000 + "b=1")
    assert "must be a number" in refusal(millrace, recipe, tmp_path, "train.epochs=1\n" + "a." * 50_000 + "b=1")


def test_numbers_and_names_that_cannot_be(millrace, recipe, tmp_path):
    assert "train.seed must be from 0 to 1e+18" in refusal(millrace, recipe, tmp_path, "train.seed=18446744073709551616")
    text = millrace("train", recipe, "train.schedule.warmup=30", "train.epochs=0.2", "--out", tmp_path / "run").stdout
    assert "train.schedule.warmup = 30 (epochs) is longer than this training, of 0.2" in text
    for word in ["foo=1", "train.foo=1", "input.foo=1", "input.kind=foo", "model.kind=foo", "eval.metrics=[foo]", "train.optimizer=foo", "data.order=foo"]:
        assert "did you mean" not in refusal(millrace, recipe, tmp_path, word), word
    assert "did you mean" not in millrace("foo", code=2).stderr


def test_misspelt_sections_name_the_right_one(millrace, recipe, tmp_path):
    def error(text):
        return refusal(millrace, recipe, tmp_path, text=f'[data]\ntrain = "x"\n{text}')

    assert "mistake.toml:3:1: there is no section [ouput]; did you mean [output]?" in error('[ouput]\nkind = "class"\n')
    assert "there is no section [task]; did you mean [output]?" in error('[task]\nkind = "class"\n')
    assert "with one input write [input]" in error('[inputs]\nkind = "picture"\n')
    assert "as [inputs.photo]" in error('[input.photo]\nkind = "picture"\n')


# ---- going on with changes


def test_resume_takes_changes_of_what_is_still_to_come(millrace, recipe, whole, tmp_path):
    longer, run = tmp_path / "longer", tmp_path / "run"
    shutil.copytree(whole, run)
    # What holds already changes nothing.
    text = millrace("train", run, "--resume", "train.epochs=3", "train.batch=20", "model.layers=" + layers_of(recipe)).stdout
    assert "step 76" not in text and not (run / "control.jsonl").exists()
    text = millrace("train", run, "--resume", "train.epochs=4", "eval.metrics=[accuracy]", "eval.batch=50", "train.keep_best=accuracy").stdout
    assert "from step 76 on train.epochs = 4" in text
    assert steps_logged(run) == 100
    last = metric_lines(run)[-1]
    assert "test/accuracy" in last and "test/ece" not in last
    assert (run / "checkpoints/best.safetensors").exists()
    journal = [json.loads(line) for line in (run / "control.jsonl").read_text().splitlines()]
    assert [(entry["step"], entry["key"], entry["value"]) for entry in journal] == [
        (75, "train.epochs", 4),
        (75, "eval.metrics", "[accuracy]"),
        (75, "eval.batch", 50),
        (75, "train.keep_best", "accuracy"),
    ]
    # The journal is what holds from then on, and a run of the same recipe with it ends alike.
    assert "train.epochs = 4" in millrace("ctl", run).stdout
    millrace("train", run, "--resume")
    assert steps_logged(run) == 100
    shutil.copytree(whole, longer)
    shutil.copy(run / "control.jsonl", longer)
    millrace("train", longer, "--resume")
    assert_same_run(run, longer)


def test_an_epoch_that_goes_on_has_the_means_of_all_its_steps(millrace, recipe, tmp_path):
    """Where its training ended within it, and was lengthened, too."""
    run = tmp_path / "run"
    millrace("train", recipe, "train.steps=37", "--out", run)
    shown = millrace("train", run, "--resume", "train.epochs=3").stdout
    lines = list(map(json.loads, (run / "metrics.jsonl").read_text().splitlines()))
    steps = [line["loss"] for line in lines if "loss" in line]
    epochs = {line["epoch"]: line["train/loss"] for line in lines if "train/loss" in line}
    assert len(steps) == 75 and list(epochs) == [1, 37 / 25, 2, 3]
    for epoch, mean in epochs.items():
        begin, end = 25 * (np.ceil(epoch) - 1), round(25 * epoch)
        assert mean == pytest.approx(np.mean(steps[int(begin) : end])), epoch
        assert epoch < 1.5 or f"epoch {epoch:g}: train loss {mean:.4g}"[:-1] in shown


def test_the_same_path_written_otherwise_changes_nothing(millrace, letters, recipe, tmp_path):
    (tmp_path / "data").symlink_to(letters)
    (tmp_path / "sub").mkdir()
    text = recipe.read_text()
    path = text.split('train = "')[1].split('"')[0]
    name = "data/" + path.split("/")[-1]
    (tmp_path / "r.toml").write_text(text.replace(path, name))
    assert (tmp_path / name).exists(), name
    millrace("train", "r.toml", "train.epochs=0.2", "--out", "run", cwd=tmp_path)
    whole = (tmp_path / "run/metrics.jsonl").read_text()
    for same, here in [(f"./{name}", tmp_path), (f"sub/../{name}", tmp_path), (path, tmp_path), (f"../{name}", tmp_path / "sub"), (name, tmp_path / "sub")]:
        millrace("train", tmp_path / "run", "--resume", f"data.train={same}", cwd=here)
    assert (tmp_path / "run/metrics.jsonl").read_text() == whole
    assert "begin a new run" in millrace("train", tmp_path / "run", "--resume", "data.train=./other", cwd=tmp_path, code=1).stderr


def layers_of(recipe):
    return recipe.read_text().split("layers = ")[1].split("\n")[0]


def test_resume_refuses_what_was_trained_with(millrace, whole, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    for word in ["train.batch=10", "train.seed=2", "train.optimizer.lr=0.1", "model.layers=[flatten, linear 10]", "input.augment=[]", "data.train=x"]:
        error = millrace("train", run, "--resume", word, code=1).stderr
        assert f"'{word}': --resume goes on with the run's own recipe" in error and "train.epochs" in error, word
    assert "did you mean 'train.epochs'" in millrace("train", run, "--resume", "train.epocs=9", code=1).stderr
    assert "step 75 is done already" in millrace("train", run, "--resume", "train.epochs=1", code=1).stderr
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()} == before


# ---- any working directory


def test_a_run_is_used_from_any_folder(millrace, recipe, letters, tmp_path):
    project, other = tmp_path / "project", tmp_path / "other"
    other.mkdir()
    shutil.copytree(letters, project / "data/letters")
    (project / "r.toml").write_text(recipe.read_text().replace(str(letters), "data/letters"))
    millrace("train", "r.toml", "train.steps=4", "--out", "run", cwd=project)
    run = project / "run"
    at_home = millrace("eval", "run", "--json", cwd=project).stdout
    from_there = millrace("eval", run, "--json", cwd=other).stdout
    assert [json.loads(text)["accuracy"] for text in (at_home, from_there)] == [json.loads(at_home)["accuracy"]] * 2
    millrace("train", run, "--resume", "train.steps=6", cwd=other)
    assert steps_logged(run) == 6
    assert "00" in millrace("data", "why", run, "--step", 2, cwd=other).stdout
    picture = next((letters / "test/A").iterdir())
    assert "%" in millrace("predict", run, picture, cwd=other).stdout
    # Folders that were moved together are found from where they are now.
    project.rename(tmp_path / "moved")
    assert json.loads(millrace("eval", "run", "--json", cwd=tmp_path / "moved").stdout)["targets"] == 100


def test_files_of_a_recipe_may_lie_below_a_folder_that_it_names(millrace, recipe, letters, tmp_path):
    text = recipe.read_text().replace(str(letters), letters.name).replace("[data]", f'[data]\nbase = "{letters.parent}"')
    (tmp_path / "r.toml").write_text(text)
    millrace("train", tmp_path / "r.toml", "train.steps=1", "--out", tmp_path / "run")


# ---- what is printed


def lines_on_terminal(columns, *arguments):
    try:
        master, slave = pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal can be opened: {error}")
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([*map(str, arguments)], stdout=slave, stderr=slave, stdin=slave)
    os.close(slave)
    text = b""
    while True:
        try:
            block = os.read(master, 65536)
        except OSError:
            break
        if not block:
            break
        text += block
    os.close(master)
    assert process.wait() == 0, text
    return re.split(r"\r\033\[K|\r\n", text.decode())


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_live_line_says_first_how_long_it_takes(binary, recipe, tmp_path, columns):
    lines = [line for line in lines_on_terminal(columns, binary, "train", recipe, "train.epochs=20", "--out", tmp_path / "run") if " left" in line]
    assert len(lines) > 2
    for line in lines:
        assert len(line) < columns
        if columns == 40:
            assert re.match(r"\d+ %  (?:[\d,]+ pictures/s  )?(?:[\d:]+|\?) left", line), line
        else:
            assert re.match(r"\d+ %  [\d,]+ pictures/s  (?:[\d:]+|\?) left  loss [\d.]+", line), line
        if columns == 200:
            assert re.search(r"accuracy [\d.]+ %  step \d+/500  epoch [\d.]+/20  [\d,]+ pictures$", line), line


def test_output_that_is_no_terminal_ends_with_what_is_done(millrace, recipe, tmp_path):
    lines = millrace("train", recipe, "train.epochs=150", "--out", tmp_path / "run").stdout.splitlines()
    shown = [line for line in lines if re.match(r"\d+ %  ", line)]  # every five seconds
    assert not shown or shown[-1].startswith("100 %  ") and "step 3750/3750" in shown[-1]
    packed = millrace("letters", tmp_path / "letters", "--train", 300, "--test", 20).stdout.splitlines()
    counted = [line for line in packed if " of " in line and line.endswith("pictures")]
    assert not counted or re.match(r"([\d,]+) of \1 pictures", counted[-1])


def test_models_are_listed_alike_by_every_verb_and_on_the_page(millrace):
    text = millrace("train", "--help").stdout
    listed = re.search(r"Models \(model.kind\), by what they take:\n((?:  .*\n)+)", text)[1]
    models = {takes: names.split(", ") for takes, names in re.findall(r"^  (\w+): (.*)$", listed, re.M)}
    assert "table" in models["table"]
    page = (ROOT / "docs/recipes.md").read_text().split("| `model.kind` | takes | keys |\n|---|---|---|\n")[1].split("\n\n")[0]
    rows = [row.split(" | ") for row in page.splitlines()]
    told = {takes: sorted(name for row in rows if row[1].startswith(f"`{takes}`") for name in re.findall(r"`(\w+)`", row[0])) for takes in models}
    assert told == {takes: sorted(names) for takes, names in models.items()}
    names = sorted(name for group in models.values() for name in group)
    for verb in ["bench", "explain", "profile"]:
        assert " ".join(names) in " ".join(millrace(verb, "--help").stdout.split()), verb
    assert f"({', '.join(names)}" in millrace("bench", "train", "fooo", 1, code=1).stderr


# ---- data that have changed


def test_one_changed_picture_is_noticed_on_resume(binary, millrace, recipe, letters, tmp_path):
    data = tmp_path / "letters"
    shutil.copytree(letters, data)
    run = tmp_path / "run"
    words = [f"data.train={data}/train", f"data.test={data}/test"]
    process = start(binary, "train", recipe, *words, "--out", run)
    wait_for_step(process, run, 8)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    path = sorted((data / "train/B").iterdir())[3]
    kept = path.read_bytes()
    pixels = np.asarray(Image.open(path)).copy()
    pixels[:8, :8] = 255 - pixels[:8, :8]
    Image.fromarray(pixels).save(path)
    assert "its content is not what the run was begun with" in millrace("train", run, "--resume", code=1).stderr
    path.write_bytes(kept)
    millrace("train", run, "--resume")
