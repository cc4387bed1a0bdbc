"""Tasks of every kind from the outside: numbers, several labels, several inputs and outputs, and recipes that
say next to nothing."""

import csv
import json
import math
import random
import re
import shutil
import subprocess
import tomllib

import numpy as np
import onnxruntime
import pytest
from conftest import ROOT
from PIL import Image
from test_train import assert_same_run, letters, recipe, whole  # noqa: F401


def predictions(millrace, run, *arguments, **more):
    return [json.loads(line) for line in millrace("predict", run, *arguments, "--json", **more).stdout.splitlines()]


def evaluated(millrace, run, *arguments, **more):
    return json.loads(millrace("eval", run, *arguments, "--json", **more).stdout)


def log_loss(rows, truth):
    """As evaluation computes it, from predicted logits."""
    total = 0
    for logits, label in zip(rows, truth, strict=True):
        most = max(logits)
        total += math.log(sum(math.exp(v - most) for v in logits)) + most - logits[label]
    return total / len(truth)


HOUSES = """
[data]
train = "{train}"
test_share = 0.2
[output]
column = "median_house_value"
[model]
width = 128
depth = 3
[train]
epochs = 30
batch = 256
optimizer = {{ kind = "adamw", lr = 2e-3, weight_decay = 0.01 }}
schedule = {{ kind = "cosine", warmup = 0.5 }}
"""


def test_prices_of_houses_are_predicted(millrace, data, tmp_path):
    source, run = data / "tabular/california-housing.csv", tmp_path / "run"
    (tmp_path / "houses.toml").write_text(HOUSES.format(train=source))
    millrace("train", tmp_path / "houses.toml", "--out", run)
    result = evaluated(millrace, run)
    assert result["r2"] > 0.78
    assert 25_000 < result["mae"] < result["rmse"] < 60_000
    for name in ("r2", "mae", "rmse"):
        low, high = result["intervals"][name]
        assert low < result[name] < high
    assert 0.15 * 20640 < result["targets"] < 0.25 * 20640
    assert "r2" in millrace("eval", run).stdout and "95 % interval" in millrace("eval", run).stdout
    # Predictions have the unit of the data, and need no column of prices.
    rows = list(csv.DictReader(source.open()))[:4000]
    with open(tmp_path / "some.csv", "w", newline="") as file:
        names = [name for name in rows[0] if name != "median_house_value"]
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    told = np.array([row["numbers"]["median_house_value"] for row in predictions(millrace, run, tmp_path / "some.csv")])
    truth = np.array([float(row["median_house_value"]) for row in rows])
    assert 1 - ((told - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum() > 0.7
    assert "median_house_value " in millrace("predict", run, tmp_path / "some.csv").stdout.splitlines()[0]


def test_the_example_of_houses_trains(millrace, data, tmp_path):
    outcome = json.loads(millrace("train", "examples/houses.toml", "train.epochs=2", "--out", tmp_path / "run", "--json",
                                  env={"MILLRACE_DATA": str(data)}).stdout)
    assert outcome["finished"] and outcome["test"]["r2"] > 0.5


def write_flats(path, rows, seed=1):
    """Flats with a price that follows from the area and the district."""
    draw = random.Random(seed)
    with open(path, "w") as file:
        file.write("rooms,area,district,price\n")
        for _ in range(rows):
            rooms, district = draw.randint(1, 6), draw.choice(["north", "south", "old town"])
            area = 18 * rooms + draw.uniform(-5, 15)
            price = area * {"north": 2.5, "south": 3.5, "old town": 5}[district] + draw.gauss(0, 5)
            file.write(f"{rooms},{area:.1f},{district},{price:.2f}\n")


def test_a_recipe_of_two_lines_and_one_that_is_drafted_train(millrace, tmp_path):
    write_flats(tmp_path / "x.csv", 600)
    (tmp_path / "short.toml").write_text('[data]\ntrain = "x.csv"\n[output]\ncolumn = "price"\n')
    text = millrace("train", "short.toml", "--out", "short", cwd=tmp_path).stdout
    assert "600 rows" in text and "done: short" in text
    result = evaluated(millrace, "short", "x.csv", cwd=tmp_path)
    assert result["targets"] == 600 and all(math.isfinite(result[name]) for name in ("mae", "rmse", "r2"))
    # Everything that was found is in the run's recipe.
    written = (tmp_path / "short/recipe.toml").read_text()
    assert 'kind = "table"' in written and 'kind = "number"' in written and 'kind = "adamw"' in written
    # Another column makes another task.
    millrace("train", "short.toml", "output.column=district", "train.epochs=40", "--out", "district", cwd=tmp_path)
    assert evaluated(millrace, "district", "x.csv", cwd=tmp_path)["accuracy"] > 0.4

    drafted = millrace("init", "x.csv", cwd=tmp_path).stdout
    assert 'column = "price"' in drafted and "#" in drafted
    (tmp_path / "drafted.toml").write_text(drafted)
    millrace("train", "drafted.toml", "--out", "drafted", cwd=tmp_path)
    assert evaluated(millrace, "drafted", cwd=tmp_path)["r2"] > 0.9


def test_a_draft_says_what_each_column_is_taken_as(millrace, tmp_path):
    head = '"line 1\nline ""2""",number,code,day,member,town,cabin,target\n'
    rows = [f"{i * 37 % 101 / 7},{i + 1},{i % 4},{1 + i % 28}/{1 + i % 12}/2024,{'yes' if i % 3 else 'no'},{'ABC'[i % 3]},{f'C{i}' if i % 4 else ''},{'uv'[i % 2]}\n" for i in range(300)]
    (tmp_path / "x.csv").write_text(head + "".join(rows))
    drafted = millrace("init", "x.csv", cwd=tmp_path).stdout
    lines = [line for line in drafted.splitlines() if line.startswith(("# taken as", "# left out"))]
    odd = r"""["line 1\u000aline \"2\"", "code"]"""
    assert lines == [
        f"# taken as number: {odd}", '# taken as yes or no: ["member"]', '# taken as date: ["day"]', '# taken as category: ["town"]',
        '# taken as there or not: ["cabin"]', '# left out: ["number"]']
    assert '# categories = ["code"]' in drafted
    (tmp_path / "drafted.toml").write_text(drafted)
    assert "done: " in millrace("train", "drafted.toml", "train.steps=3", "--out", "run", cwd=tmp_path).stdout


def test_a_draft_takes_the_column_that_people_mean(millrace, tmp_path):
    random.seed(3)
    days = [f"{2024 + i // 360}-{1 + i // 30 % 12:02}-{1 + i % 30 % 28:02}" for i in range(400)]
    cases = {
        "colour,price": (lambda i: f"{'red green blue'.split()[i % 3]},{i * 7 % 50 / 10}", "table", "number", "price"),
        "date,sales": (lambda i: f"{days[i]},{i % 17 / 3}", "table", "number", "sales"),
        "temperature,day": (lambda i: f"{i % 17 / 3},{days[i // 8]}", "table", "number", "temperature"),
        "x,age": (lambda i: f"{i % 7},{18 + i * 31 % 60}", "table", "number", "age"),
        "x,floor": (lambda i: f"{i % 7},{i * 31 % 25}", "table", "class", "floor"),
        "size,colour,name,unit": (lambda i: f"{i % 11 / 2},{'red blue'.split()[i % 2]},name {i},cm", "table", "class", "colour"),
        "name,language": (lambda i: f"{'abcde'[i % 5]}{i}x,{'uv'[i % 2]}", "text", "class", "language"),
        "x,y": (lambda i: f"{i % 7},{'' if i % 9 == 4 else 'ab'[i % 2]}", "table", "class", "y")}
    for number, (head, (row, of_input, of_output, target)) in enumerate(cases.items()):
        (tmp_path / f"{number}.csv").write_text(head + "\n" + "".join(row(i) + "\n" for i in range(400)))
        drafted = millrace("init", f"{number}.csv", cwd=tmp_path).stdout
        recipe = tomllib.loads(drafted)
        assert (recipe["input"]["kind"], recipe["output"]["kind"], recipe["output"]["column"]) == (of_input, of_output, target), drafted
        (tmp_path / "drafted.toml").write_text(drafted)
        assert "done: " in millrace("train", "drafted.toml", "train.steps=2", "--out", f"run{number}", cwd=tmp_path).stdout
    assert recipe["data"]["where"] == "y = y" and "44 of 400 have no y" in drafted
    (tmp_path / "plain.toml").write_text('[data]\ntrain = "7.csv"\n[output]\ncolumn = "y"\n')
    assert 'data.where = "y = y"' in millrace("train", "plain.toml", "--out", "none", cwd=tmp_path, code=1).stderr


def test_a_draft_for_pictures_and_texts_trains(millrace, letters, tmp_path):  # noqa: F811
    (tmp_path / "tags.csv").write_text("text,label\n" + "".join(f"{'good' if i % 2 else 'bad'} one {i},{i % 2}\n" for i in range(200)))
    for source in (letters, tmp_path / "tags.csv"):
        drafted = millrace("init", source).stdout
        (tmp_path / "drafted.toml").write_text(drafted)
        out = tmp_path / f"run-{source.name}"
        text = millrace("train", tmp_path / "drafted.toml", "train.steps=3", "train.batch=8", "--out", out, cwd=tmp_path).stdout
        assert "done: " in text, drafted
        assert "accuracy" in evaluated(millrace, out, cwd=tmp_path)


def test_names_of_an_exported_model_are_different(millrace, tmp_path):
    names = ["numbers", "logits", "probabilities", "LabelEncoder_0", "constant_0", "label", "x"]
    random.seed(1)
    rows = [[random.choice("ab") for _ in names[:-2]] + [random.choice("uv"), f"{random.random():.3f}"] for _ in range(64)]
    (tmp_path / "x.csv").write_text("\n".join(",".join(row) for row in [names, *rows]) + "\n")
    train = "[train]\nsteps = 2\nbatch = 16\n"
    (tmp_path / "one.toml").write_text(f'[data]\ntrain = "x.csv"\n[output]\ncolumn = "label"\n{train}')
    (tmp_path / "two.toml").write_text(
        '[data]\ntrain = "x.csv"\n[inputs.test]\nkind = "table"\ncolumns = ["logits", "x"]\n[inputs.b]\nkind = "table"\n'
        f'columns = ["constant_0"]\n[outputs.test]\ncolumn = "label"\n[outputs.b]\ncolumn = "LabelEncoder_0"\n{train}')
    expected = {
        "one": (["numbers", "numbers_text", "logits_text", "probabilities_text", "LabelEncoder_0", "constant_0"], ["logits", "probabilities"]),
        "two": (["test.numbers", "test.logits_text", "b.constant_0"], ["test.logits", "test.probabilities", "b.logits", "b.probabilities"])}
    for name, (inputs, outputs) in expected.items():
        text = millrace("train", f"{name}.toml", "--out", name, cwd=tmp_path).stdout
        renamed = [line for line in text.splitlines() if "the exported model takes the column" in line]
        assert len(renamed) == sum(array.endswith("_text") for array in inputs)
        session = onnxruntime.InferenceSession(tmp_path / name / "model.onnx")
        assert [i.name for i in session.get_inputs()] == inputs and [o.name for o in session.get_outputs()] == outputs
        feed = {i.name: np.array([["a"], ["b"]], object) if "string" in i.type else np.zeros((2, 1)) for i in session.get_inputs()}
        assert all(np.isfinite(result).all() for result in session.run(None, feed))
        assert millrace("export", name, f"{name}.onnx", cwd=tmp_path).stdout.splitlines()[:-1] == renamed


def test_names_of_classes_may_hold_any_bytes(millrace, tmp_path):
    rows = b"".join(b'%d,"%s"\n' % (i, [b"caf\xe9", b"caf\xea", b"two\nlines"][i % 3]) for i in range(60))
    (tmp_path / "x.csv").write_bytes(b"x,label\n" + rows)
    (tmp_path / "r.toml").write_text('[data]\ntrain = "x.csv"\ntest_share = 0.2\n[train]\nsteps = 2\nbatch = 16\n')
    text = millrace("train", "r.toml", "--out", "run", cwd=tmp_path).stdout
    assert re.search(r"\d+ rows to test on, kept by data.test_share", text)
    names = ["caf\\xe9", "caf\\xea", "two\nlines"]
    for row in predictions(millrace, tmp_path / "run", tmp_path / "x.csv", "--top", "3"):
        assert row["class"] in names and sorted(row["probabilities"]) == names
    about = onnxruntime.InferenceSession(tmp_path / "run/model.onnx").get_modelmeta().custom_metadata_map
    assert json.loads(about["classes"]) == names


def test_classes_of_samples_that_are_left_out_stay_classes(millrace, tmp_path):
    """The test set may have them: by data.where, test_where and test_share alike, of pictures and tables."""
    letters = tmp_path / "letters"
    millrace("letters", letters, "--train", "100", "--test", "20")
    (tmp_path / "x.csv").write_text("x,label\n" + "".join(f"{i},{'' if i % 50 == 7 else 'abcd'[i % 4]}\n" for i in range(200)))
    (tmp_path / "r.toml").write_text('[data]\ntrain = "x.csv"\n[train]\nsteps = 2\nbatch = 16\n')
    missing = "(label = 'a' or label = 'b' or label = 'c' or label = 'd')"
    for name, changes in (("pictures", [f"data.train={letters}/train", f"data.test={letters}/test", "data.where=label in ('C', 'D')"]),
                          ("where", ["data.where=label in ('c', 'd')"]),
                          ("test_where", [f"data.where={missing}", "data.test_where=label = 'b'"]),
                          ("share", ["data.where=label in ('a', 'b')", "data.test_share=0.2"])):
        millrace("train", "r.toml", *changes, "--out", name, cwd=tmp_path)
        about = onnxruntime.InferenceSession(tmp_path / name / "model.onnx").get_modelmeta().custom_metadata_map
        assert json.loads(about["classes"]) == list("ABCDEFGHIJ" if name == "pictures" else "abcd"), name
    assert evaluated(millrace, "pictures", cwd=tmp_path)["targets"] == 20
    # What was measured of the pictures is part of the run's recipe: trained again on others they are
    # normalised alike.
    recipe = tomllib.loads((tmp_path / "pictures/recipe.toml").read_text())
    assert len(recipe["input"]["mean"]) == len(recipe["input"]["std"]) == 1 and 0 < recipe["input"]["mean"][0] < 1


def test_errors_of_tiny_and_huge_numbers_are_shown(millrace, tmp_path):
    for name, scale, offset in (("tiny", 1e-7, 0), ("huge", 3e9, 0), ("far", 1, 1e9)):
        (tmp_path / "x.csv").write_text("a,y\n" + "".join(f"{i % 9},{scale * (i % 9 - 4) + offset!r}\n" for i in range(200)))
        (tmp_path / "r.toml").write_text('[data]\ntrain = "x.csv"\ntest_share = 0.2\n[output]\nkind = "number"\ncolumn = "y"\n[train]\nsteps = 300\nbatch = 32\n')
        text = millrace("train", "r.toml", "--out", name, cwd=tmp_path).stdout
        result = evaluated(millrace, name, cwd=tmp_path)
        assert 0 < result["mae"] < scale and result["r2"] > 0.9, name
        shown = re.search(r"mae +(\S+)  \(95 % interval (\S+) to (\S+)\)", millrace("eval", name, cwd=tmp_path).stdout)
        assert float(shown[1]) == pytest.approx(result["mae"], rel=1e-3) and float(shown[2]) < float(shown[1]) < float(shown[3])
        assert float(re.findall(r"test mae (\S+)", text)[-1]) == pytest.approx(result["mae"], rel=1e-3)
        session = onnxruntime.InferenceSession(tmp_path / name / "model.onnx")
        values = session.run(["values"], {"numbers": np.array([[4.0]])})[0]
        assert values.dtype == np.float64 and abs(values[0, 0] - offset) < scale


def test_what_a_recipe_names_in_vain_is_said(millrace, tmp_path):
    write_flats(tmp_path / "x.csv", 300)
    (tmp_path / "r.toml").write_text(f'[data]\ntrain = "{tmp_path}/x.csv"\n[output]\ncolumn = "price"\n')

    def error(*changes):
        text = millrace("train", tmp_path / "r.toml", *changes, "--out", tmp_path / "never", code=1).stderr
        assert text.startswith("error: ") and text.count("\n") == 1 and not (tmp_path / "never").exists()
        return text

    assert "did you mean 'price'" in error("output.column=prise")
    assert "did you mean 'number'" in error("output.kind=numbr")
    assert "did you mean 'table'" in error("input.kind=tabel")
    assert "district" in error("output.kind=number", "output.column=district")
    assert "does not apply to an output of kind number" in error("output.kind=number", "output.loss=cross-entropy")
    assert "does not apply to output, of kind number" in error("output.kind=number", "eval.metrics=[accuracy]")
    assert "output.colum" in error("output.colum=price")
    (tmp_path / "r.toml").write_text(f'[data]\ntrain = "{tmp_path}/x.csv"\n[outputs.a]\ncolumn = "price"\n')
    assert "names are for several" in error()


def test_an_exported_table_of_numbers_gives_them_in_onnx_runtime(millrace, tmp_path):
    write_flats(tmp_path / "flats.csv", 200)
    (tmp_path / "recipe.toml").write_text(f'[data]\ntrain = "{tmp_path}/flats.csv"\n[output]\ncolumn = "price"\n[train]\nsteps = 3\nbatch = 32\n')
    millrace("train", tmp_path / "recipe.toml", "--out", tmp_path / "run")
    session = onnxruntime.InferenceSession(tmp_path / "run/model.onnx")
    assert [o.name for o in session.get_outputs()] == ["logits", "values"]
    assert "numbers" in [i.name for i in session.get_inputs()]


def test_ranges_of_numbers_show_what_a_line_cannot(millrace, tmp_path):
    """A price that goes up and down with the size: one layer knows it by the ranges, and not by the size
    alone."""
    sizes = np.random.default_rng(5).uniform(0, 1, 600)
    prices = np.abs(4 * sizes % 2 - 1)
    (tmp_path / "x.csv").write_text("size,price\n" + "".join(f"{s:.6f},{p:.6f}\n" for s, p in zip(sizes, prices)))
    (tmp_path / "r.toml").write_text('[data]\ntrain = "x.csv"\ntest_share = 0.2\n[input]\nbins = 16\n[output]\ncolumn = "price"\n'
                                     '[model]\nlayers = ["linear 1"]\n[train]\nepochs = 60\nbatch = 32\n'
                                     'optimizer = { kind = "adamw", lr = 2e-2 }\n')
    for bins, least, most in ((16, 0.9, 1), (0, -1, 0.3)):
        run = tmp_path / f"run-{bins}"
        millrace("train", "r.toml", f"input.bins={bins}", "--out", run, cwd=tmp_path)
        assert least < evaluated(millrace, run, cwd=tmp_path)["r2"] <= most
    rows = [{"size": 0.1}, {"size": None}, {"size": -3.0}, {"size": 7.5}]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    wanted = [row["numbers"]["price"] for row in predictions(millrace, "run-16", "p.jsonl", cwd=tmp_path)]
    session = onnxruntime.InferenceSession(tmp_path / "run-16/model.onnx")
    numbers = np.array([[0.1], [np.nan], [-3.0], [7.5]])
    found = session.run(["values"], {"numbers": numbers})[0][:, 0]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", ["mse", "huber", "quantile"])
def test_losses_of_numbers_train(millrace, tmp_path, loss):
    write_flats(tmp_path / "x.csv", 500)
    write_flats(tmp_path / "y.csv", 100, seed=2)
    (tmp_path / "r.toml").write_text('[data]\ntrain = "x.csv"\ntest = "y.csv"\n[output]\ncolumn = "price"\n[train]\nepochs = 30\nbatch = 32\n'
                                     'optimizer = { kind = "adamw", lr = 5e-3 }\nschedule = "cosine"\n')
    millrace("train", "r.toml", f"output.loss={loss}", "--out", "run", cwd=tmp_path)
    result = evaluated(millrace, "run", cwd=tmp_path)
    assert result["r2"] > (0.9 if loss != "quantile" else 0.7)
    # What is predicted is what was evaluated.
    rows = list(csv.DictReader(open(tmp_path / "y.csv")))
    off = [row["numbers"]["price"] - float(wanted["price"])
           for row, wanted in zip(predictions(millrace, "run", "y.csv", cwd=tmp_path), rows, strict=True)]
    assert np.mean(np.abs(off)) == pytest.approx(result["mae"], rel=1e-4)
    assert np.sqrt(np.mean(np.square(off))) == pytest.approx(result["rmse"], rel=1e-4)


def test_a_metric_that_the_test_rows_do_not_define_is_absent(millrace, tmp_path):
    draw = random.Random(4)
    for name, rows in (("train", 200), ("test", 50)):
        lines = [(x := draw.random(), "yes" if x > 0.5 and name == "train" else "no") for _ in range(rows)]
        (tmp_path / f"{name}.csv").write_text("x,y\n" + "".join(f"{x:.4f},{y}\n" for x, y in lines))
    (tmp_path / "r.toml").write_text("""
[data]
train = "train.csv"
test = "test.csv"
[output]
column = "y"
[train]
epochs = 2
batch = 20
[eval]
metrics = ["accuracy", "roc-auc", "pr-auc-exact"]
""")
    text = millrace("train", "r.toml", "--out", "run", "train.keep_best=roc-auc", cwd=tmp_path).stdout
    assert text.count("test roc-auc is not defined: it needs rows of a class and rows of others") == 1
    assert "roc-auc -  pr-auc-exact -" in text and "nan" not in text
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [line["test/roc-auc"] for line in lines if "test/accuracy" in line] == [None, None]
    shown = millrace("eval", "run", cwd=tmp_path).stdout
    assert re.search(r"roc-auc +-  \(not defined: it needs rows of a class and rows of others\)", shown) and "nan" not in shown
    found = evaluated(millrace, "run", cwd=tmp_path)
    assert found["roc-auc"] is None and found["pr-auc-exact"] is None and 0 <= found["accuracy"] <= 1
    text = millrace("train", "run", "--resume", "train.epochs=3", cwd=tmp_path).stdout
    assert "nan" not in text


LABELS = """
[data]
train = "train.csv"
test = "test.csv"
[output]
kind = "classes"
column = "tags"
[model]
width = 32
[train]
epochs = 30
batch = 32
optimizer = { kind = "adamw", lr = 5e-3 }
"""


def test_several_labels_hold_or_not(millrace, tmp_path):
    draw = random.Random(6)
    for name, rows in (("train", 800), ("test", 200)):
        with open(tmp_path / f"{name}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["x", "y", "tags"])
            for _ in range(rows):
                x, y = draw.uniform(-1, 1), draw.uniform(-1, 1)
                tags = [tag for tag, holds in (("top", y > 0), ("left", x < 0), ("both", x < 0 < y)) if holds]
                draw.shuffle(tags)
                writer.writerow([f"{x:.4f}", f"{y:.4f}", ",".join(tags)])
    (tmp_path / "r.toml").write_text(LABELS)
    text = millrace("train", "r.toml", "--out", "run", cwd=tmp_path).stdout
    assert "label-accuracy" in text
    result = evaluated(millrace, "run", cwd=tmp_path)
    assert result["label-accuracy"] > 0.93 and result["f1"] > 0.93 and result["targets"] == 200
    # Predictions: the labels that hold, and they agree with the evaluation.
    wanted = [set(filter(None, row["tags"].split(","))) for row in csv.DictReader(open(tmp_path / "test.csv"))]
    rows = predictions(millrace, "run", "test.csv", "--top", 3, cwd=tmp_path)
    told = [set(row["classes"]) for row in rows]
    right = sum((label in a) == (label in b) for a, b in zip(told, wanted, strict=True) for label in ("both", "left", "top"))
    assert right / 600 == pytest.approx(result["label-accuracy"], rel=1e-9)
    both = sum(len(a & b) for a, b in zip(told, wanted))
    assert 2 * both / (sum(map(len, told)) + sum(map(len, wanted))) == pytest.approx(result["f1"], rel=1e-9)
    for row in rows[:20]:
        assert set(row["probabilities"]) == {"both", "left", "top"}
        assert set(row["classes"]) == {label for label, share in row["probabilities"].items() if share > 0.5}
    # And with the exported model.
    session = onnxruntime.InferenceSession(tmp_path / "run/model.onnx")
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == ["both", "left", "top"]
    numbers = np.array([[float(row["x"]), float(row["y"])] for row in csv.DictReader(open(tmp_path / "test.csv"))])
    logits, shares = session.run(["logits", "probabilities"], {"numbers": numbers})
    np.testing.assert_allclose([row["logits"] for row in rows], logits, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(shares, 1 / (1 + np.exp(-logits)), rtol=1e-4, atol=1e-5)
    # Which labels there are is known: another one in the data is named.
    (tmp_path / "odd.csv").write_text("x,y,tags\n0.1,0.2,bottom\n")
    assert "bottom" in millrace("eval", "run", "odd.csv", cwd=tmp_path, code=1).stderr


# What examples/signs.toml is trained with here, so that it takes seconds.
SHORT = ["train.epochs=6", "train.batch=50", "train.checkpoint_steps=50", "train.keep_checkpoints=100", "eval.batch=50"]


@pytest.fixture(scope="module")
def signs(binary, tmp_path_factory):
    """Where the data of the example are, as its changes; and the columns of the test set."""
    folder = tmp_path_factory.mktemp("signs") / "signs"
    subprocess.run([binary, "letters", folder, "--signs", "--train", "2000", "--test", "200"], check=True, capture_output=True)
    rows = list(csv.DictReader(open(folder / "test/labels.csv")))
    test = {name: [row[name] for row in rows] for name in ("file", "lens", "letter")}
    test |= {name: [float(row[name]) for row in rows] for name in ("distance", "size")}
    return [f"data.train={folder}/train", f"data.test={folder}/test"], folder / "test", test


@pytest.fixture(scope="module")
def sign_run(binary, signs, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "signs"
    result = subprocess.run([binary, "train", "examples/signs.toml", *signs[0], *SHORT, "--out", out], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    return out


def test_a_picture_and_a_row_tell_a_class_and_a_number(millrace, signs, sign_run):
    result = evaluated(millrace, sign_run)
    # The row alone explains 0.85 of the size's variance, the picture alone next to nothing.
    assert result["letter.accuracy"] > 0.8 and result["size.r2"] > 0.9 and result["targets"] == 200
    assert set(result["intervals"]) == {"letter.accuracy", "letter.log-loss", "size.mae", "size.r2"}
    steps = [json.loads(line) for line in (sign_run / "metrics.jsonl").read_text().splitlines()]
    first = next(line for line in steps if "lr" in line)
    assert first["loss"] == pytest.approx(first["letter.loss"] + 0.5 * first["size.loss"], rel=1e-5)
    assert {"letter.accuracy", "size.mae"} <= first.keys()
    assert {"test/letter.accuracy", "test/size.r2"} <= steps[-1].keys()
    shown = millrace("eval", sign_run).stdout
    assert "letter.accuracy" in shown and "size.r2" in shown
    why = json.loads(millrace("data", "why", sign_run, "--step", 3, "--json").stdout)
    assert len(why["samples"]) == 50 and {sample["letter"] for sample in why["samples"]} <= set("ABCDEFGHIJ")
    assert all("size" in sample for sample in why["samples"])


def test_a_task_of_several_inputs_is_predicted_as_evaluation_sees_it(millrace, signs, sign_run, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    _, folder, test = signs
    result = evaluated(millrace, sign_run)
    rows = predictions(millrace, sign_run, folder)
    assert [row["input"].split("/")[-1] for row in rows] == test["file"]
    assert sum(row["letter"]["class"] == letter for row, letter in zip(rows, test["letter"], strict=True)) / 200 == result["letter.accuracy"]
    losses = log_loss([row["letter"]["logits"] for row in rows], ["ABCDEFGHIJ".index(letter) for letter in test["letter"]])
    assert losses == pytest.approx(result["letter.log-loss"], rel=1e-9)
    off = [abs(row["size"]["numbers"]["size"] - size) for row, size in zip(rows, test["size"], strict=True)]
    assert np.mean(off) == pytest.approx(result["size.mae"], rel=1e-4)
    # From another format, without the targets, and columns in another order, the same to the last bit.
    pictures = [(folder / name).read_bytes() for name in test["file"]]
    bare = {"lens": test["lens"], "distance": test["distance"], "image": pictures}
    pyarrow.parquet.write_table(pa.table(bare), tmp_path / "bare.parquet")
    again = predictions(millrace, sign_run, tmp_path / "bare.parquet")
    for output in ("letter", "size"):
        assert [row[output]["logits"] for row in again] == [row[output]["logits"] for row in rows]
    line = millrace("predict", sign_run, folder, "--top", 1).stdout.splitlines()[0]
    assert "letter: " in line and "size: " in line
    # What has only one of them says what is missing.
    pyarrow.parquet.write_table(pa.table({"image": pictures}), tmp_path / "half.parquet")
    assert "distance" in millrace("predict", sign_run, tmp_path / "half.parquet", code=1).stderr


def test_an_exported_task_of_several_inputs_gives_the_same_in_onnx_runtime(millrace, signs, sign_run, tmp_path):
    _, folder, test = signs
    millrace("export", sign_run, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    assert {i.name: i.type for i in session.get_inputs()} == {
        "photo.pictures": "tensor(uint8)", "camera.numbers": "tensor(double)", "camera.lens": "tensor(string)"}
    given = {"photo.pictures": np.stack([np.asarray(Image.open(folder / name))[None] for name in test["file"]]),
             "camera.numbers": np.array(test["distance"])[:, None], "camera.lens": np.array(test["lens"], object)[:, None]}
    names = ["letter.logits", "letter.probabilities", "size.logits", "size.values"]
    assert {o.name for o in session.get_outputs()} == set(names)
    theirs = dict(zip(names, session.run(names, given)))
    rows = predictions(millrace, sign_run, folder)
    for output in ("letter", "size"):
        np.testing.assert_allclose([row[output]["logits"] for row in rows], theirs[f"{output}.logits"], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose([[row["size"]["numbers"]["size"]] for row in rows], theirs["size.values"], rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(theirs["letter.probabilities"].sum(1), 1, rtol=1e-5)
    classes = json.loads(session.get_modelmeta().custom_metadata_map["letter.classes"])
    assert [classes[best] for best in theirs["letter.logits"].argmax(1)] == [row["letter"]["class"] for row in rows]


def test_a_stopped_task_of_several_inputs_resumes_to_the_same_bits(millrace, sign_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(sign_run, run)
    checkpoints = sorted((run / "checkpoints").iterdir())
    assert len(checkpoints) > 3
    for path in checkpoints[3:]:
        path.unlink()
    (run / "model.onnx").unlink()
    step = int(checkpoints[2].stem.removeprefix("step-"))
    assert f"going on from step {step} of 240" in millrace("train", run, "--resume", "--threads", 1).stdout
    assert_same_run(sign_run, run)


def test_rows_that_many_pictures_share_are_no_copies(millrace, signs):
    """Few distances and two lenses: rows to test on are those of training by chance, pictures are not."""
    report = json.loads(millrace("check", "examples/signs.toml", *signs[0], "--only", "overlap", "--json").stdout)
    assert [each["verdict"] for each in report["checks"]] == ["pass"], report


def test_several_inputs_that_do_not_go_together(millrace, signs, tmp_path):
    def error(*changes):
        return millrace("train", "examples/signs.toml", *signs[0], *changes, "--out", tmp_path / "never", code=1).stderr

    assert "inputs.photo.augmnt" in error("inputs.photo.augmnt=[flip]")
    assert "means nothing to inputs.camera.kind = 'table'" in error("inputs.camera.augment=[flip]")
    assert "letter.accuracy" in error("eval.metrics=[accuracy]")
    assert "belongs to no input" in error("model.foto={kind=convnet}")
    assert "model.layers are of one input" in error("model={layers=[linear 4]}")
    assert "takes one input" in error("model={kind=convnet}")
    assert "cannot have this name" in error("outputs.kind={kind=class, column=letter}")
    assert "did you mean 'size'" in error("outputs.size.column=sise")


def test_predictions_of_pictures_are_those_of_their_evaluation(millrace, letters, whole):  # noqa: F811
    result = evaluated(millrace, whole)
    rows = predictions(millrace, whole, letters / "test")
    truth = [row["input"].split("/")[-2] for row in rows]
    assert len(rows) == 100 and sum(row["class"] == label for row, label in zip(rows, truth)) / 100 == result["accuracy"]
    losses = log_loss([row["logits"] for row in rows], ["ABCDEFGHIJ".index(label) for label in truth])
    assert losses == pytest.approx(result["log-loss"], rel=1e-9)
