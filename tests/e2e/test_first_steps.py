"""What somebody does who has data and has never seen the program: other layouts, other habits, mistakes."""

import json
import random

import numpy as np
import pytest
from PIL import Image


def write_pictures(folder, names, classes=("cat", "dog")):
    """Of classes that their brightness tells."""
    draw = np.random.default_rng(1)
    for i, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pixels = draw.integers(0, 100, (24, 32, 3)) + 150 * (i % len(classes))
        Image.fromarray(pixels.astype(np.uint8)).save(folder / name)
    return [classes[i % len(classes)] for i in range(len(names))]


def write_table(path, rows=200):
    draw = random.Random(1)
    lines = ["a,b,y"]
    for _ in range(rows):
        a, b = draw.random(), draw.randint(1, 5)
        lines.append(f"{a:.4f},{b},{'high' if a * b > 1.2 else 'low'}")
    path.write_text("\n".join(lines) + "\n")
    return path


def train_draft(millrace, tmp_path, *source):
    draft = millrace("init", *source).stdout
    (tmp_path / "r.toml").write_text(draft)
    result = millrace("train", tmp_path / "r.toml", "train.epochs=2", "--out", tmp_path / "run")
    return draft, result.stdout


LAYOUTS = {
    "beside": ("{}.png", "filename,label", "{}.png"),
    "below": ("images/{}.png", "file,label", "{}.png"),
    "paths": ("images/{}.png", "path,breed", "./images/{}.png"),
    "stems": ("train/{}.png", "id,breed", "{}"),
    "outside": ("images/{}.png", "image,label", "{}.png"),  # and what is named is the folder of pictures
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_table_beside_pictures_says_their_classes(millrace, tmp_path, layout):
    file, header, cell = LAYOUTS[layout]
    folder = tmp_path / "pictures"
    classes = write_pictures(folder, [file.format(f"p{i}") for i in range(80)])
    (folder / "labels.csv").write_text(header + "\n" + "".join(f"{cell.format(f'p{i}')},{name}\n" for i, name in enumerate(classes)))
    if layout == "outside":
        file, folder = file.removeprefix("images/"), folder / "images"
    draft, out = train_draft(millrace, tmp_path, folder)
    assert 'kind = "picture"' in draft and f'column = "{header.split(",")[1]}"' in draft and "# 2 classes: cat, dog" in draft
    batch = int(draft.split("batch = ")[1].split("\n")[0])
    assert 8 * batch <= 80  # of so few pictures some steps an epoch
    assert "labels.csv says what the files are" in out and "is one of 2 classes (cat, dog)" in out
    # Each has its own.
    column = header.split(",")[1]
    millrace("data", "convert", folder, tmp_path / "told.jsonl", "--format", "jsonl", "--columns", f"__key__,{column}")
    told = map(json.loads, (tmp_path / "told.jsonl").read_text().splitlines())
    assert {row["__key__"]: row[column] for row in told} == {file.format(f"p{i}"): name for i, name in enumerate(classes)}
    if layout != "stems":  # of which the table alone does not tell
        assert f"give their folder, {tmp_path}/pictures," in millrace("init", tmp_path / "pictures/labels.csv", code=1).stderr


def test_a_table_that_names_some_pictures_leaves_the_others_without_a_class(millrace, tmp_path):
    folder = tmp_path / "pictures"
    classes = write_pictures(folder, [f"{i:03}.png" for i in range(60)])
    rows = [f"{i:03}.png,{name},{i}" for i, name in enumerate(classes[:50])] + ["lost.png,cat,1", "000.png,cat,99"]
    (folder / "labels.csv").write_text("image,label,weight\n" + "\n".join(rows) + "\n")
    (folder / "other.csv").write_text("a,b\n1,2\n3,4\n")
    head = millrace("data", "head", folder)
    assert "labels.csv says what the files are: label weight; 10 of 60 files are not in it; 1 of its rows name no file" in head.stderr
    assert "61 samples" in head.stdout  # the first picture has two rows
    draft, out = train_draft(millrace, tmp_path, folder)
    assert "10 of 61 have no label" in draft
    # Without a table, what to write is said.
    (folder / "labels.csv").unlink()
    error = millrace("init", folder, code=1).stderr
    assert "labels.csv, with the lines filename,label" in error


def test_data_given_instead_of_a_recipe_are_told_apart(millrace, tmp_path):
    table = write_table(tmp_path / "four.csv")
    write_pictures(tmp_path, ["p.png"])
    for data in (table, tmp_path / "p.png"):
        for verb in (["train"], ["estimate"], ["data", "show"]):
            error = millrace(*verb, data, code=1).stderr
            assert f"{data}: that is data (" in error and f"millrace init {data} > recipe.toml drafts one" in error
    (tmp_path / "folder/cat").mkdir(parents=True)
    assert "millrace init" in millrace("train", tmp_path / "folder", code=1).stderr
    # What is a recipe with a mistake has its line.
    (tmp_path / "r.toml").write_text("[data\n")
    assert "r.toml:1:" in millrace("train", tmp_path / "r.toml", code=1).stderr


def test_json_of_pandas_is_told_how_to_be_written(millrace, tmp_path):
    columns = {"a": {"0": 1, "1": 2}, "y": {"0": "u", "1": "v"}}
    rows = [{"a": 1, "y": "u"}, {"a": 2, "y": "v"}]
    kinds = {
        "columns": json.dumps(columns),
        "indented": json.dumps(columns, indent=2),
        "records": json.dumps(rows),
        "split": json.dumps({"columns": ["a", "y"], "index": [0, 1], "data": [[1, "u"], [2, "v"]]}),
        "values": json.dumps([[1, "u"], [2, "v"]]),
    }
    for name, text in kinds.items():
        for ending in ("json", "jsonl"):
            (tmp_path / f"{name}.{ending}").write_text(text + "\n")
        assert 'orient="records", lines=True' in millrace("data", "head", tmp_path / f"{name}.json", code=1).stderr, name
    assert 'orient="records", lines=True' in millrace("data", "head", tmp_path / "columns.jsonl", code=1).stderr
    (tmp_path / "lines.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "2 samples" in millrace("data", "head", tmp_path / "lines.json").stdout


def test_drafts_find_what_to_test_on_or_are_told(millrace, tmp_path):
    (tmp_path / "both").mkdir()
    train, test = write_table(tmp_path / "both/train.csv"), write_table(tmp_path / "both/test.csv", 50)
    old, new = write_table(tmp_path / "old.csv"), write_table(tmp_path / "new.csv", 40)
    for source in ([tmp_path / "both"], [train]):
        draft = millrace("init", *source).stdout
        assert f'train = "{train}"' in draft and f'test  = "{test}"' in draft and "test_share" not in draft
    draft, out = train_draft(millrace, tmp_path, old, "--test", new)
    assert f'test  = "{new}"' in draft and "new.csv: 40 rows" in out
    assert "test_share" in millrace("init", old).stdout
    assert "none.csv: no such file" in millrace("init", old, "--test", tmp_path / "none.csv", code=1).stderr
    (tmp_path / "other.csv").write_text("x,z\n1,2\n3,4\n")
    assert "other.csv" in millrace("init", old, "--test", tmp_path / "other.csv", code=1).stderr


def test_architectures_that_do_not_go_with_the_data_name_those_that_do(millrace, tmp_path):
    table = write_table(tmp_path / "four.csv")
    (tmp_path / "r.toml").write_text(f'[data]\ntrain = "{table}"\n[output]\ncolumn = "y"\n')
    for kind, words in {"minilm": "choose one of table, boosting, dlrm, fm", "resnet50x": "did you mean 'resnet50'?", "lightgbm": "minilm, mlp, mobilenet_v2"}.items():
        assert words in millrace("train", tmp_path / "r.toml", f"model.kind={kind}", code=1).stderr


def test_names_of_classes_survive_other_formats_or_are_told(millrace, tmp_path):
    write_pictures(tmp_path / "pictures", [f"{'dog' if i % 2 else 'cat'}/{i}.png" for i in range(40)])
    millrace("pack", tmp_path / "pictures", tmp_path / "packed", "--name", "s")
    tar, names = tmp_path / "packed/s-000000.tar", 'output.classes = ["cat", "dog"]'
    out = millrace("data", "convert", tar, tmp_path / "s.tfrecord", "--format", "tfrecord").stdout
    assert f"note: cls: the numbers of classes are written, without their names; a recipe has them again by {names}" in out
    assert names in millrace("pack", tmp_path / "pictures", tmp_path / "mds", "--name", "s", "--format", "mds").stdout
    recipe = f'[data]\ntrain = "{tmp_path}/mds/s-000000"\n[output]\nkind = "class"\nclasses = ["cat", "dog"]\n[train]\nepochs = 2\nbatch = 8\n'
    (tmp_path / "r.toml").write_text(recipe)
    assert "(cat, dog)" in millrace("train", tmp_path / "r.toml", "--out", tmp_path / "run").stdout
    # Folders are called as the classes are.
    out = millrace("data", "convert", tar, tmp_path / "again", "--format", "folder").stdout
    assert "without their names" not in out
    assert {path.name: len(list(path.iterdir())) for path in (tmp_path / "again").iterdir()} == {"cat": 20, "dog": 20}
    # What has no other names than its numbers loses none.
    (tmp_path / "n.jsonl").write_text("".join(json.dumps({"cls": i % 3, "x": i}) + "\n" for i in range(9)))
    assert "without their names" not in millrace("data", "convert", tmp_path / "n.jsonl", tmp_path / "n.csv", "--format", "csv").stdout
