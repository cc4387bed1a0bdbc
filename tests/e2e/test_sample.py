"""Training on a small part that is like the whole (data.sample, --sample)."""

import csv
import io
import json
import random
import re
import tarfile

import pytest
from PIL import Image
from conftest import write_texts
from test_train import assert_same_run, start, wait_for_step


def rows_of(millrace, recipe, *changes, seed=1):
    """The rows of a training's one batch of all its samples; changes are keys of [data]."""
    text = recipe.read_text().replace("[data]\n", "[data]\n" + "".join(change + "\n" for change in changes)) + f"seed = {seed}\n"
    one = recipe.with_name("one.toml")
    one.write_text(text.replace("batch = 10", "batch = 1"))
    count = int(re.search(r" to 0 of (\d+) in its order", millrace("data", "why", one, "--step", "1").stdout)[1])
    one.write_text(text.replace("batch = 10", f"batch = {count}"))
    folder = recipe.parent / f"batch{len(list(recipe.parent.glob('batch*')))}"
    millrace("data", "why", one, "--step", "1", "--write", folder)
    with open(folder / "rows.csv") as rows:
        return list(csv.DictReader(rows))


def write_table(tmp_path, output):
    draw = random.Random(1)
    lines = ["number,x,patient,label,price"]
    for i in range(1000):
        lines.append(f"{i},{draw.gauss(0, 1):.4f},{draw.randrange(40)},{'rare' if i % 50 == 3 else 'usual'},{draw.random() ** 3 * 100:.3f}")
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    recipe = tmp_path / "x.toml"
    recipe.write_text(f'[data]\ntrain = "{tmp_path}/x.csv"\ntest_share = 0.2\n[output]\n{output}\n[train]\nbatch = 10\nepochs = 2\n')
    return recipe


CLASS = 'kind = "class"\ncolumn = "label"'
NUMBER = 'kind = "number"\ncolumn = "price"'


def test_a_part_of_a_table_is_like_the_whole(millrace, tmp_path):
    recipe = write_table(tmp_path, CLASS)
    rows = rows_of(millrace, recipe, 'sample = "20%"')
    whole = rows_of(millrace, recipe)
    rare = sum(row["label"] == "rare" for row in whole)
    assert abs(len(rows) - len(whole) / 5) <= 1 and abs(sum(row["label"] == "rare" for row in rows) - rare / 5) <= 1
    numbers = {row["number"] for row in rows}
    assert numbers < {row["number"] for row in whole}
    assert numbers == {row["number"] for row in rows_of(millrace, recipe, 'sample = "20%"')}
    assert numbers != {row["number"] for row in rows_of(millrace, recipe, 'sample = "20%"', seed=2)}
    assert numbers < {row["number"] for row in rows_of(millrace, recipe, 'sample = "50%"')}
    # Even where the rare class has less than one sample it stays.
    few = rows_of(millrace, recipe, 'sample = "20"')
    assert {row["label"] for row in few} == {"rare", "usual"} and 20 <= len(few) <= 21


def test_a_part_of_numbers_and_of_groups(millrace, tmp_path):
    recipe = write_table(tmp_path, NUMBER)
    prices = sorted(float(row["price"]) for row in rows_of(millrace, recipe, 'sample = "10%"'))
    whole = sorted(float(row["price"]) for row in rows_of(millrace, recipe))
    for share in (0.1, 0.5, 0.9):
        rank = sum(price <= prices[int(share * len(prices))] for price in whole) / len(whole)
        assert abs(rank - share) < 0.06
    group = rows_of(millrace, recipe, 'sample = "30%"', 'test_by = "group:patient"')
    rest = rows_of(millrace, recipe, 'test_by = "group:patient"')
    patients = {row["patient"] for row in group}
    assert len(group) == sum(row["patient"] in patients for row in rest) < len(rest) / 2


def test_what_train_says_and_a_run_remembers(millrace, tmp_path):
    recipe = write_table(tmp_path, CLASS)
    run = tmp_path / "run"
    said = millrace("train", recipe, "--sample", "20%", "--out", run).stdout
    assert re.search(r"data.sample = 20%: 16\d of 8\d\d rows to train on", said)
    assert 'sample = "20%"' in (run / "recipe.toml").read_text()
    assert json.loads((run / "origin.jsonl").read_text().splitlines()[0])["data"]
    assert "leave it out" in millrace("train", run, "--resume", "--sample", "10%", code=1).stderr
    wrong = millrace("train", recipe, "--sample", "2.5", code=1).stderr
    assert "data.sample" in wrong and "as 2%" in wrong
    assert "less of it" in millrace("train", recipe, "--sample", "2%", "data.stream=true", "data.test_share=0", "data.order=sequential", "train.steps=2", code=1).stderr


def test_a_part_of_pictures_in_a_folder_and_a_tar(millrace, tmp_path):
    draw = random.Random(1)
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        for name in ("cat", "dog"):
            (tmp_path / "x" / name).mkdir(parents=True)
            for i in range(60 if name == "cat" else 20):
                stream = io.BytesIO()
                Image.new("L", (16, 16), draw.randrange(256)).save(stream, "PNG")
                (tmp_path / "x" / name / f"{i}.png").write_bytes(stream.getvalue())
                entry = tarfile.TarInfo(f"{name}/{i}.png")
                entry.size = len(stream.getvalue())
                tar.addfile(entry, io.BytesIO(stream.getvalue()))
    recipe = tmp_path / "x.toml"
    for source in ("x", "x.tar"):
        recipe.write_text(f'[data]\ntrain = "{tmp_path}/{source}"\n[output]\nkind = "class"\n[model]\nlayers = ["flatten", "linear 2"]\n[train]\nbatch = 4\nepochs = 1\n')
        said = millrace("train", recipe, "--sample", "25%", "--out", tmp_path / f"run-{source}").stdout
        assert "20 of 80 pictures" in said


def test_a_piece_of_a_corpus(millrace, tmp_path):
    write_texts(tmp_path)
    recipe = tmp_path / "t.toml"
    recipe.write_text(
        f'[data]\ntrain = "{tmp_path}/corpus.txt"\ntest_share = 0.1\n[input]\nkind = "tokens"\ntokenizer = "byte"\nlength = 16\n'
        '[model]\nkind = "gpt"\nwidth = 16\ndepth = 1\nheads = 2\n[train]\nbatch = 4\nsteps = 3\n'
    )
    tokens = [int(re.search(r"\d+ texts, (\d+) tokens", millrace("train", recipe, *changes, "--out", tmp_path / f"run{i}").stdout)[1])
              for i, changes in enumerate(([], ["--sample", "10%"], ["--sample", "10%", "train.seed=2"]))]
    assert tokens[0] / 12 < tokens[1] < tokens[0] / 8 and abs(tokens[1] - tokens[2]) < tokens[0] / 50


def test_a_stopped_run_on_a_part_goes_on_to_the_same_bits(millrace, tmp_path, binary):
    recipe = write_table(tmp_path, CLASS)
    changes = ["train.epochs=100", "train.checkpoint_steps=50"]
    millrace("train", recipe, "--sample", "50%", *changes, "--out", tmp_path / "whole")
    process = start(binary, "train", recipe, "data.sample=50%", *changes, "--out", tmp_path / "cut")
    wait_for_step(process, tmp_path / "cut", 50)
    process.kill()
    process.wait()
    millrace("train", tmp_path / "cut", "--resume")
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


def test_a_part_smaller_than_a_batch_is_a_batch_that_can_be_accumulated(millrace, tmp_path):
    recipe = write_table(tmp_path, NUMBER)
    said = millrace("train", recipe, "data.sample=10", "train.batch=30", "train.accumulate=3", "--out", tmp_path / "run")
    assert "train.batch = 9: the 10 rows of data.sample do not fill a batch of 30" in said.stdout + said.stderr


def test_a_table_that_does_not_fill_the_usual_batch_trains_in_smaller_ones(millrace, tmp_path):
    rows = "".join(f"{i % 7},{(i * 5) % 11},{'even' if i % 7 % 2 == 0 else 'odd'}\n" for i in range(70))
    (tmp_path / "few.csv").write_text("a,b,label\n" + rows)
    (tmp_path / "few.toml").write_text(f'[data]\ntrain = "{tmp_path}/few.csv"\n')
    said = millrace("train", tmp_path / "few.toml", "train.epochs=2", "--out", tmp_path / "run")
    assert "train.batch = 8: the 70 rows do not fill the usual batch of 128" in said.stdout + said.stderr
    assert "batch = 8" in re.sub(r" +", " ", (tmp_path / "run/recipe.toml").read_text())
    # A number that was asked for is not changed.
    refused = millrace("train", tmp_path / "few.toml", "train.batch=100", "--out", tmp_path / "none", code=1)
    assert "70 rows do not fill a batch of 100; make the batch smaller, such as 8" in refused.stdout + refused.stderr
