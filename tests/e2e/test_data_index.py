"""millrace data index, query and verify, and data.where of a recipe."""
import json
import os
import re

import pytest


@pytest.fixture(scope="module")
def shards(binary, tmp_path_factory):
    """Packed letters: two shards with names of classes; and their pattern."""
    import subprocess

    folder = tmp_path_factory.mktemp("letters")
    subprocess.run([binary, "letters", folder / "set", "--train", "100", "--test", "40"], check=True)
    subprocess.run([binary, "pack", folder / "set", folder / "out", "--shard-samples", "60", "--no-index"], check=True)
    return folder / "out"


def test_an_index_is_made_used_refused_and_made_anew(millrace, shards):
    pattern = shards / "train-{000000..000001}.tar"
    before = millrace("data", "head", pattern, "--json", "-n", 100).stdout
    text = millrace("data", "index", pattern).stdout
    assert "train-000000.tar.mrx: 60 samples" in text and "train-000001.tar.mrx: 40 samples" in text
    after = millrace("data", "head", pattern, "--json", "-n", 100)
    assert after.stdout == before and after.stderr == ""
    os.utime(shards / "train-000001.tar")
    assert "has changed since this index was made" in millrace("data", "head", pattern).stderr
    assert "it is made anew" in millrace("data", "index", pattern).stdout
    assert millrace("data", "head", pattern).stderr == ""


def test_a_query_prints_counts_and_numbers(millrace, shards):
    pattern = shards / "train-*.tar"
    found = json.loads(millrace("data", "query", pattern, "label in (3, 5) and width = 32", "--json").stdout)
    labels = [row["cls"] for row in json.loads(millrace("data", "head", pattern, "--json", "-n", 100).stdout)["head"]]
    assert found["samples"] == 100 and found["indices"] == [i for i, c in enumerate(labels) if c in (3, 5)]
    assert found["matching"] == len(found["indices"]) > 0
    assert int(millrace("data", "query", pattern, "label = 3", "--count").stdout) == labels.count(3)
    line = millrace("data", "query", pattern, "label = 5").stdout.splitlines()[0]
    assert re.fullmatch(r"\d+\t.*train-00000\d\.tar:\d+\.jpg", line)
    error = millrace("data", "query", pattern, "lable = 3", code=1).stderr
    assert "did you mean 'cls'" in error and "\n  lable = 3\n  ^" in error


def test_verify_names_what_is_bad_and_exits_with_1(millrace, shards):
    path = shards / "test-000000.tar"
    assert "stores a checksum" in millrace("data", "verify", path).stdout
    millrace("data", "index", path)
    assert "40 of them with a checksum in the index; 0 bad" in millrace("data", "verify", path).stdout
    content = bytearray(path.read_bytes())
    place = content.index(b"\xff\xd8", 20_000) + 100
    content[place] ^= 4
    times = path.stat()
    path.chmod(0o644)
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    result = millrace("data", "verify", path, "--json", code=1)
    bad = json.loads(result.stdout)["bad"]
    assert len(bad) == 1 and "its bytes have changed" in bad[0]["why"]
    text = millrace("data", "verify", path, code=1).stdout
    assert bad[0]["name"] in text and "1 bad" in text


def test_data_where_trains_on_what_it_chooses(millrace, shards, tmp_path):
    recipe = tmp_path / "r.toml"
    recipe.write_text(f"""
[data]
train = "{shards}/train-*.tar"
where = "label in (0, 1, 2) and width > 16"
[model]
layers = ["flatten", "linear 10"]
[train]
epochs = 1
batch = 8
optimizer = {{ kind = "sgd", lr = 0.1, momentum = 0.9 }}
""")
    text = millrace("train", recipe, "--out", tmp_path / "run").stdout
    chosen = int(millrace("data", "query", shards / "train-*.tar", "label < 3", "--count").stdout)
    assert 0 < chosen < 100
    assert f"{chosen} pictures" in text or f"{chosen // 8 * 8} pictures" in text
    assert "no sample matches" in millrace("train", recipe, "data.where=label = 99", code=1).stderr
    assert "recipe" in (tmp_path / "run/recipe.toml").name and "label in (0, 1, 2)" in (tmp_path / "run/recipe.toml").read_text()
