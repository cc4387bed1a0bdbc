"""What the end-to-end tests share: the binary under test, and where its build is."""

import os
import random
import subprocess
import wave
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]


def write_texts(folder):
    """corpus.txt and messages.tsv as docs/text.md has them, made up: sentences of a few words, and spam that
    says so."""
    draw = random.Random(2)
    words = ["the", "king", "of", "no", "land", "sings", "to", "his", "horse", "and", "never", "sleeps"]
    (folder / "corpus.txt").write_text("".join(" ".join(draw.choices(words, k=draw.randint(2, 12))) + "\n" for _ in range(1500)))
    rows = ["label\tmessage\n"]
    for i in range(900):
        text = " ".join(draw.choices(words, k=draw.choice([2, 3, 4, 5, 9, 30])))
        rows.append(f"spam\t{text} win a prize\n" if i % 3 == 0 else f"ham\t{text}\n")
    (folder / "messages.tsv").write_text("".join(rows))


def write_samples(folder):
    """photos/, customers.csv and words/ as the pages about pictures, tables and sounds have them, made up."""
    draw = np.random.default_rng(5)
    for name, colour in (("cat", (200, 120, 40)), ("dog", (60, 90, 160))):
        (folder / "photos" / name).mkdir(parents=True)
        for i in range(120):
            pixels = np.clip(draw.normal(colour, 50, (36 + i % 5, 40, 3)), 0, 255).astype("uint8")
            Image.fromarray(pixels).save(folder / "photos" / name / f"{i}.png")
    lines = ["id,age,plan,calls,left"]
    for i in range(600):
        age, calls, plan = draw.integers(18, 80), draw.poisson(3), draw.choice(["basic", "plus", "max"])
        lines.append(f"{7919 * i % 6007},{age},{plan},{calls},{'yes' if calls + 2 * (plan == 'basic') + draw.normal() > 4 else 'no'}")
    (folder / "customers.csv").write_text("\n".join(lines) + "\n")
    for name, pitch in (("yes", 400), ("no", 1500)):
        (folder / "words" / name).mkdir(parents=True)
        for i in range(80):
            values = 8000 * np.sin(np.arange(3200) * pitch * draw.uniform(0.9, 1.1) / 8000 * 6.283) + draw.normal(0, 600, 3200)
            with wave.open(str(folder / "words" / name / f"{i}.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(8000)
                file.writeframes(values.astype("<i2").tobytes())


def queries(count, seed, features=6):
    """Sizes, features and grades of queries: the first two features say how relevant a row is, beside
    noise."""
    chance = random.Random(seed)
    rows = []
    for query in range(count):
        for _ in range(chance.choice([1, 3, 5, 9, 14])):
            x = [round(chance.random(), 3) if chance.random() < 0.7 else 0 for _ in range(features)]
            grade = min(4, int(5 * (0.6 * x[0] + 0.4 * x[1]) + chance.gauss(0, 0.3) > 0.8) * (1 + int(3 * x[0])))
            rows.append((query, x, grade))
    return rows


def write_libsvm(path, rows, qid=False):
    lines = []
    for query, x, grade in rows:
        pairs = " ".join(f"{i}:{v}" for i, v in enumerate(x, 1) if v)
        lines.append(f"{grade} " + (f"qid:{query + 100} " if qid else "") + pairs)
    path.write_text("\n".join(lines) + "\n")
    if not qid:
        sizes = {}
        for query, _, _ in rows:
            sizes[query] = sizes.get(query, 0) + 1
        path.with_name(path.name + ".query").write_text("".join(f"{size}\n" for size in sizes.values()))


WINS = {("Anna", "Bert"): 3, ("Anna", "Cleo"): 4, ("Bert", "Anna"): 1, ("Bert", "Cleo"): 2, ("Cleo", "Anna"): 1, ("Cleo", "Bert"): 3}


def write_duels(path):
    rows = [f"{winner},{loser}" for (winner, loser), times in WINS.items() for _ in range(times)]
    path.write_text("\n".join(["winner,loser", *rows]) + "\n")


def write_rankings(folder):
    """rank.train and rank.test with the sizes of their queries, and duels.csv, as docs/ranking.md has
    them."""
    write_libsvm(folder / "rank.train", queries(60, 1))
    write_libsvm(folder / "rank.test", queries(25, 2))
    write_duels(folder / "duels.csv")


@pytest.fixture(scope="session", autouse=True)
def cache():
    """Where compiled kernels, choices, indexes and tokens are kept: beside the binary (or in
    MILLRACE_TEST_CACHE), never in the user's own cache folder, which MILLRACE_CACHE may name."""
    binary = Path(os.environ.get("MILLRACE", ROOT / "build/release/millrace"))
    os.environ["MILLRACE_CACHE"] = os.environ.get("MILLRACE_TEST_CACHE", str(binary.resolve().parent / "test-cache"))


@pytest.fixture(scope="session")
def binary():
    """The millrace binary: $MILLRACE, else build/release/millrace."""
    path = Path(os.environ.get("MILLRACE", ROOT / "build/release/millrace"))
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


@pytest.fixture
def millrace(binary):
    """Runs the binary: millrace("train", recipe, …) → CompletedProcess; fails unless it exits with `code`
    (None: any)."""

    def run(*arguments, code=0, cwd=ROOT, timeout=1800, env=None):
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
    """The folder of data sets outside the repository: $MILLRACE_DATA, else ../shared/data; skips when it is
    absent."""
    folder = Path(os.environ.get("MILLRACE_DATA", ROOT.parent / "shared/data"))
    if not folder.exists():
        pytest.skip(f"no data in {folder}")
    return folder
