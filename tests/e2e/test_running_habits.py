"""How people run trainings: closing terminals, going on longer, moving about, mistyping, and starting from other weights."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time

import pytest
from conftest import ROOT
from test_train import assert_same_run, letters, metric_lines, recipe, start, steps_logged, wait_for_step, whole  # noqa: F401


def step_of(run):
    return max(int(path.stem[5:]) for path in (run / "checkpoints").glob("step-*"))


# ---- signals


def test_hanging_up_saves_as_ctrl_c_does(binary, recipe, whole, millrace, tmp_path):
    run = tmp_path / "run"
    process = start(binary, "train", recipe, "--out", run)
    wait_for_step(process, run, 8)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGHUP)  # as a terminal and its shell do
    text = process.communicate(timeout=60)[0]
    assert process.returncode == 130, text
    assert "everything is saved" in text and step_of(run) == steps_logged(run)
    millrace("train", run, "--resume")
    assert_same_run(whole, run)


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
    page = (ROOT / "docs/recipes.md").read_text().split("| a `model.kind` that takes | is |\n|---|---|\n")[1].split("\n\n")[0]
    rows = {re.search(r"`(\w+)`", row)[1]: re.findall(r"`(\w+)`", row.split(" | ")[1]) for row in page.splitlines()}
    assert rows == models
    names = sorted(name for group in models.values() for name in group)
    for verb in ["bench", "explain", "profile"]:
        assert " ".join(names) in " ".join(millrace(verb, "--help").stdout.split()), verb
    assert f"({', '.join(names)}" in millrace("bench", "train", "fooo", 1, code=1).stderr
