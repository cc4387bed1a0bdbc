"""What a person sees on a terminal."""
import os
import pty
import re
import subprocess

import pytest


def on_terminal(*arguments):
    """Runs on a pseudo-terminal; returns (exit code, everything printed)."""
    try:
        master, slave = pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal can be opened: {error}")
    process = subprocess.Popen([*map(str, arguments)], stdout=slave, stderr=slave, stdin=slave)
    os.close(slave)
    text = b""
    while True:
        try:
            block = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        text += block
    os.close(master)
    return process.wait(), text.decode()


def test_training_shows_a_live_line(binary, tmp_path):
    subprocess.run([binary, "letters", tmp_path / "letters", "--train", "500", "--test", "50"], check=True, capture_output=True)
    recipe = tmp_path / "r.toml"
    recipe.write_text(f"""
[data]
train = "{tmp_path}/letters/train"
test = "{tmp_path}/letters/test"
[model]
layers = ["flatten", "linear 10"]
[train]
epochs = 100
batch = 50
optimizer = {{ kind = "sgd", lr = 0.1, momentum = 0.9 }}
""")
    code, text = on_terminal(binary, "train", recipe, "--out", tmp_path / "run")
    assert code == 0
    lines = text.split("\r\033[K")
    assert any(
        re.match(r"\d+ %  [\d,]+ pictures/s  [\d:?]+ left  loss [\d.]+  accuracy [\d.]+ %", line) for line in lines
    ), text
    assert "epoch 2:" in text and "test accuracy" in text


def test_errors_are_red_only_on_a_terminal(binary, tmp_path):
    code, text = on_terminal(binary, "eval", tmp_path / "nothing")
    assert code == 1
    assert "\033[31merror:\033[0m" in text
