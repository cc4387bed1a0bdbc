"""millrace pack: the commands of docs/data.md, interruptions, verification, keys and columns as other
programs see them."""
import io
import json
import os
import re
import signal
import subprocess
import tarfile
import time

import numpy as np
import pytest
from conftest import ROOT
from PIL import Image

# Long enough that it can be interrupted, in shards, at a place of one's choosing.
LONG = ["--augment", "8", "--augmentations", "affine 10, random-resized-crop 96, flip", "--shard-samples", "400"]


@pytest.fixture(scope="module")
def letters(binary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("letters")
    subprocess.run([binary, "letters", folder / "set", "--train", "1200", "--test", "40"], check=True, capture_output=True)
    return folder / "set"


def contents(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.suffix != ".mrx"}


def journal(folder, name="train"):
    try:
        return json.loads((folder / f"{name}.journal").read_text())
    except FileNotFoundError:
        return {"shards": [], "complete": False}


def begin(binary, *arguments, until):
    """Starts packing and comes back as soon as `until()` holds, while it runs."""
    process = subprocess.Popen([binary, "pack", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while not until():
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.002)
    return process


def nameless_files(folder):
    """Does the file system have files without a name? Then nothing is left of what a killed process was
    writing."""
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    except OSError:
        return False
    return True


def test_a_pack_that_was_killed_goes_on_to_the_same_bytes(binary, millrace, letters, tmp_path):
    source = letters / "train"
    command = [source, tmp_path / "out", *LONG]
    assert "10 classes" in millrace("pack", source, tmp_path / "whole", *LONG).stdout
    whole = contents(tmp_path / "whole")
    assert len(whole) == 24 + 1  # 1,200 pictures in 8 versions
    for stop in (signal.SIGKILL, signal.SIGINT):
        shards = len(journal(tmp_path / "out")["shards"])
        process = begin(binary, *command, until=lambda: len(journal(tmp_path / "out")["shards"]) > shards + 2)
        process.send_signal(stop)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == (-9 if stop == signal.SIGKILL else 130)
        if stop == signal.SIGINT:
            assert "goes on behind" in out and "the same command goes on" in out
        if stop == signal.SIGINT or nameless_files(tmp_path):
            assert not list((tmp_path / "out").glob("*.tmp-*"))
        assert not (tmp_path / "out/train.json").exists()
    text = millrace("pack", *command).stdout
    assert re.search(r"goes on behind \d+ complete shards", text)
    assert contents(tmp_path / "out") == whole
    other = begin(binary, *command, until=lambda: len(journal(tmp_path / "out")["shards"]) > 0)
    other.kill()
    other.communicate()
    text = millrace("pack", *command, "--seed", "2").stdout
    assert "begins anew" in text and contents(tmp_path / "out").keys() == whole.keys()
    assert contents(tmp_path / "out")["train-000000.tar"] != whole["train-000000.tar"]


def test_threads_change_nothing(millrace, letters, tmp_path):
    for threads in (1, 3):
        millrace("pack", letters, tmp_path / str(threads), "--max-side", 24, "--quality", 70, "--threads", threads)
    assert contents(tmp_path / "1") == contents(tmp_path / "3")


def test_verify_ends_with_1_and_names_what_differs(binary, millrace, letters, tmp_path):
    command = [letters / "train", tmp_path / "out", *LONG, "--verify"]
    # Killed while it reads back: then a shard is damaged on the disk.
    process = begin(binary, *command, until=lambda: journal(tmp_path / "out")["complete"])
    process.kill()
    process.communicate()
    shard = tmp_path / "out/train-000001.tar"
    content = bytearray(shard.read_bytes())
    content[content.index(b"\xff\xd8") + 400] ^= 1
    shard.chmod(0o644)
    shard.write_bytes(content)
    text = millrace("pack", *command, code=1).stdout
    assert "differs: " in text and "train-000001.tar:00000050-0.jpg" in text and "2 differences" in text


def test_pictures_are_shrunk_as_pillow_does(millrace, tmp_path):
    random = np.random.default_rng(3)
    (tmp_path / "set/a").mkdir(parents=True)
    big = Image.fromarray(random.integers(0, 256, (90, 130, 3), dtype=np.uint8))
    big.save(tmp_path / "set/a/big.png")
    big.crop((0, 0, 30, 20)).save(tmp_path / "set/a/small.png")
    millrace("pack", tmp_path / "set", tmp_path / "out", "--resize", 40, "--quality", 100)
    with tarfile.open(tmp_path / "out/set-000000.tar") as tar:
        shrunk, same = (tar.extractfile(f"0000000{i}.jpg").read() for i in range(2))
    assert same == (tmp_path / "set/a/small.png").read_bytes()
    wanted = big.resize((57, 40), Image.Resampling.BILINEAR)
    stream = io.BytesIO()
    wanted.save(stream, "JPEG", quality=100)
    found = np.asarray(Image.open(io.BytesIO(shrunk)), dtype=int)
    assert np.abs(found - np.asarray(Image.open(stream), dtype=int)).max() <= 1


def test_a_table_of_people_is_split_by_person_and_by_time(millrace, tmp_path):
    with tarfile.open(tmp_path / "people.tar", "w") as tar:
        for i in range(60):
            stream = io.BytesIO()
            Image.new("RGB", (8, 8), (4 * i, 0, 0)).save(stream, "JPEG")
            members = {"cls": str(i % 2), "jpg": stream.getvalue(), "person.txt": f"p{i * 7 % 12}",
                       "day.txt": f"2024-{1 + i * 5 % 12:02}-01"}
            for extension, content in members.items():
                content = content.encode() if isinstance(content, str) else content
                info = tarfile.TarInfo(f"{i:03}.{extension}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))

    def split(by, column, out):
        text = millrace("pack", tmp_path / "people.tar", tmp_path / out, "--split", "train=0.7,test=0.3", "--split-by", by,
                        "--keep-keys", "--verify").stdout
        assert text.count("all is as in the source") == 2
        rows = {}
        for part in ("train", "test"):
            head = json.loads(millrace("data", "head", tmp_path / out / f"{part}-000000.tar", "-n", 99, "--json").stdout)["head"]
            rows[part] = [row[column] for row in head]
            assert {row["__key__"] for row in head} <= {f"{i:03}" for i in range(60)}
        assert len(rows["train"]) + len(rows["test"]) == 60 and len(rows["test"]) >= 12
        return rows

    people = split("group:person.txt", "person.txt", "a")
    assert not set(people["train"]) & set(people["test"])
    days = split("time:day.txt", "day.txt", "b")
    assert max(days["train"]) <= min(days["test"])
    assert "person.txt" in millrace("pack", tmp_path / "people.tar", tmp_path / "c", "--split", "a=0.5,b=0.5",
                                    "--split-by", "group:person", code=1).stderr


def test_bad_pictures_are_listed_and_too_many_are_an_error(millrace, letters, tmp_path):
    subprocess.run(["cp", "-r", letters / "test", tmp_path / "set"], check=True)
    bad = sorted((tmp_path / "set").rglob("*.jpg"))[7]
    bad.write_bytes(bad.read_bytes()[:200])
    error = millrace("pack", tmp_path / "set", tmp_path / "out", "--check", code=1).stderr
    assert bad.name in error and "--most-bad" in error
    text = millrace("pack", tmp_path / "set", tmp_path / "out", "--check", "--most-bad", 1).stdout
    assert f"left out: {bad}" in text and "1 of 40 samples are bad" in text


def test_commands_of_the_page_run(binary, letters, tmp_path):
    section = (ROOT / "docs/data.md").read_text().split("### Packing\n")[1].split("\n#")[0]
    lines = [re.split(r" {2,}", line)[0] for line in section.splitlines() if line.startswith("millrace pack ")]
    assert len(lines) >= 6
    (tmp_path / "photos").symlink_to(letters / "train")
    with tarfile.open(tmp_path / "visits.tar", "w") as tar:
        for i in range(40):
            stream = io.BytesIO()
            Image.new("RGB", (300, 200), (6 * i, 0, 0)).save(stream, "JPEG")
            for extension, content in {"cls": b"%d" % (i % 2), "jpg": stream.getvalue(), "person.id": b"%d" % (i % 9),
                                       "day.txt": b"2024-01-%02d" % (1 + i % 28)}.items():
                info = tarfile.TarInfo(f"{i:03}.{extension}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    for line in lines:
        result = subprocess.run(f"{binary} {line.removeprefix('millrace ')}", shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert result.returncode == 0, (line, result.stdout, result.stderr)
