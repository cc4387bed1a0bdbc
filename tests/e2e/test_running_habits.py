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
