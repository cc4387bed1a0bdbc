"""What the end-to-end tests share: the binary under test, and where its build is."""

import os
import random
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def write_texts(folder):
    """corpus.txt and messages.tsv as docs/text.md has them, made up: sentences of a few words, and spam that says so."""
    draw = random.Random(2)
    words = ["the", "king", "of", "no", "land", "sings", "to", "his", "horse", "and", "never", "sleeps"]
    (folder / "corpus.txt").write_text("".join(" ".join(draw.choices(words, k=draw.randint(2, 12))) + "\n" for _ in range(1500)))
    rows = ["label\tmessage\n"]
    for i in range(900):
        text = " ".join(draw.choices(words, k=draw.choice([2, 3, 4, 5, 9, 30])))
        rows.append(f"spam\t{text} win a prize\n" if i % 3 == 0 else f"ham\t{text}\n")
    (folder / "messages.tsv").write_text("".join(rows))


@pytest.fixture(scope="session", autouse=True)
def cache():
    """Where compiled kernels, choices, indexes and tokens are kept: beside the binary, never in the user's own cache folder."""
    binary = Path(os.environ.get("MILLRACE", ROOT / "build/release/millrace"))
    os.environ.setdefault("MILLRACE_CACHE", str(binary.resolve().parent / "test-cache"))


@pytest.fixture(scope="session")
def binary():
    """The millrace binary: $MILLRACE, else build/release/millrace."""
    path = Path(os.environ.get("MILLRACE", ROOT / "build/release/millrace"))
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


@pytest.fixture
def millrace(binary):
    """Runs the binary: millrace("train", recipe, …) → CompletedProcess; fails unless it exits with `code` (None: any)."""

    def run(*arguments, code=0, cwd=ROOT, timeout=600, env=None):
        result = subprocess.run(
            [str(binary), *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=cwd,
            timeout=timeout,
            env={**os.environ, **(env or {})},
        )
        assert code is None or result.returncode == code, f"exit {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result

    return run


@pytest.fixture(scope="session")
def data():
    """The folder of data sets outside the repository: $MILLRACE_DATA, else ../shared/data; skips when it is absent."""
    folder = Path(os.environ.get("MILLRACE_DATA", ROOT.parent / "shared/data"))
    if not folder.exists():
        pytest.skip(f"no data in {folder}")
    return folder
