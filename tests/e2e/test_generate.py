"""docs/generate.md's commands, and that what is generated is what the model says."""

import json
import shlex
import subprocess

import numpy as np
import onnxruntime
import pytest
from conftest import write_texts
from test_docs import blocks, commands


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generate")
    write_texts(folder)
    recipe = next(text for text in blocks("docs/text.md", "toml") if 'kind      = "tokens"' in text)
    (folder / "corpus.toml").write_text(recipe)
    (folder / "beginnings.txt").write_text("the king\nno\nof his horse and the land\nsings\n\nto\n")
    return folder


@pytest.fixture(scope="module")
def run(binary, desk):
    subprocess.run([binary, "train", "corpus.toml", "train.epochs=1", "--out", "run"], cwd=desk, check=True, capture_output=True)
    return "run"


def generated(millrace, desk, *arguments):
    return [json.loads(line) for line in millrace("generate", *arguments, "--json", cwd=desk).stdout.splitlines()]


def test_commands_of_the_page_run_in_their_order(millrace, desk):
    lines = commands("docs/generate.md")
    assert len(lines) >= 7
    for line in lines:
        words = shlex.split(line)[1:]
        said = millrace(*words, *(["train.epochs=0.5"] if words[0] == "train" else []), cwd=desk)
        assert said.stdout, line
        if "--stats" in words:
            assert "tokens/s" in said.stderr and "of weights a step" in said.stderr
    assert "sleeps" not in millrace("generate", "runs/play", "the king", "--stop", "sleeps", cwd=desk).stdout


def test_of_a_text_that_is_longer_than_a_row_its_end_counts(millrace, tmp_path):
    (tmp_path / "corpus.txt").write_text("the king and the sea and of his horse and the land sings of no man.\n" * 800)
    (tmp_path / "recipe.toml").write_text(
        '[data]\ntrain = "corpus.txt"\n[input]\nkind = "tokens"\nlength = 64\n[output]\nkind = "tokens"\n'
        '[model]\nkind = "gpt"\nwidth = 32\ndepth = 1\nheads = 2\n'
        '[train]\nepochs = 2\nbatch = 16\noptimizer = { kind = "adamw", lr = 3e-3 }\n')
    millrace("train", "recipe.toml", "--out", "run", cwd=tmp_path)
    long = "the king and the sea " * 10 + "and of his horse and the lan"  # its first 64 end in "t"
    whole, end = generated(millrace, tmp_path, "run", long, long[-64:], "--tokens", 5)
    assert whole["tokens"] == end["tokens"] and whole["continuation"].startswith("d")


def test_the_most_probable_tokens_are_those_of_the_exported_model(millrace, desk, run):
    """Token by token through ONNX Runtime, which knows no cache."""
    millrace("export", run, "model.onnx", cwd=desk)
    session = onnxruntime.InferenceSession(desk / "model.onnx")
    texts = ["the king", "no", "of his horse"]
    for row in generated(millrace, desk, run, *texts, "--tokens", 60):
        ids = list(row["prompt"].encode())
        for token in row["tokens"]:
            padded = np.array([ids + [0] * (128 - len(ids))], np.int64)  # what is behind a place is not seen
            logits = session.run(["logits"], {"tokens": padded})[0][0, len(ids) - 1]
            # Ties within rounding are no fault.
            assert logits[token] >= logits.max() - 1e-3 * np.abs(logits).max()
            ids.append(token)
        assert row["end"] == "length" and bytes(row["tokens"]).decode(errors="replace") == row["continuation"]


def test_a_text_is_what_it_is_alone(millrace, desk, run):
    drawn = ["--temperature", 0.9, "--top-k", 30, "--tokens", 40]
    options = [*drawn, "--seed", 5]
    texts = (desk / "beginnings.txt").read_text().split("\n")[:-1]
    together = generated(millrace, desk, run, "--prompts", "beginnings.txt", *options, "--batch", 4)
    assert [row["prompt"] for row in together] == texts and all(len(row["tokens"]) == 40 for row in together)
    assert generated(millrace, desk, run, "--prompts", "beginnings.txt", *options, "--batch", 1) == together
    (desk / "windows.txt").write_bytes(b"\xef\xbb\xbf" + (desk / "beginnings.txt").read_bytes().replace(b"\n", b"\r\n"))
    assert generated(millrace, desk, run, "--prompts", "windows.txt", *options, "--batch", 4) == together
    assert generated(millrace, desk, run, texts[0], *options)[0] == together[0]
    # Room for one text of 64 tokens at a time.
    assert generated(millrace, desk, run, "--prompts", "beginnings.txt", *options, "--memory", f"{4 * 16 * 2 * 2 * 64 * 4}B") == together
    assert generated(millrace, desk, run, texts[0], *drawn, "--seed", 6)[0] != together[0]


def test_texts_end_and_go_beyond_the_models_length(millrace, desk, run):
    long, stopped = generated(millrace, desk, run, "the king", "--tokens", 300), generated(millrace, desk, run, "the king", "--stop", " ")
    assert len(long[0]["tokens"]) == 300
    assert stopped[0]["end"] == "stop" and " " not in stopped[0]["continuation"]
    assert long[0]["continuation"].startswith(stopped[0]["continuation"] + " ")


def test_what_cannot_be_generated_is_said(millrace, desk, run, tmp_path):
    error = lambda *words: millrace("generate", *words, cwd=desk, code=1).stderr
    assert "a temperature of -1" in error(run, "x", "--temperature", -1)
    assert "top-p 2" in error(run, "x", "--top-p", 2)
    assert "0 tokens: a text goes on by 1 at least" in error(run, "x", "--tokens", 0)
    assert "--batch 0" in error(run, "x", "--batch", 0)
    assert "nowhere.txt: cannot be read" in error(run, "--prompts", "nowhere.txt")
    assert "16 tokens need" in error(run, "x", "--memory", "100B")
    messages = next(text for text in blocks("docs/text.md", "toml") if 'kind      = "text"' in text)
    (desk / "messages.toml").write_text(messages)
    millrace("train", "messages.toml", "train.steps=2", "--out", tmp_path / "told", cwd=desk)
    assert "does not predict what comes next" in error(str(tmp_path / "told"), "x")
