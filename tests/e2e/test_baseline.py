"""millrace baseline: what it measures, on planted data; what it keeps; what train says of its network beside
it."""

import json
import re

import numpy as np
import pytest
from PIL import Image
from conftest import ROOT

RECIPE = """
[data]
train      = "{folder}/rows.csv"
test_share = 0.25
[input]
columns = {columns}
[output]
column = "{target}"
[model]
kind  = "table"
width = 64
depth = 2
[train]
epochs    = {epochs}
batch     = 50
optimizer = {{ kind = "adamw", lr = 3e-3 }}
"""


def plant(folder, columns, target, inputs, epochs=3, more=""):
    """A table of columns by name, and a recipe for it."""
    names = list(columns)
    rows = zip(*columns.values())
    (folder / "rows.csv").write_text("\n".join([",".join(names), *[",".join(map(str, row)) for row in rows]]) + "\n")
    path = folder / "planted.toml"
    path.write_text(RECIPE.format(folder=folder, target=target, columns=json.dumps(inputs), epochs=epochs) + more)
    return path


def rows_of(report):
    return report["rows"]


def measured(millrace, recipe, *words):
    report = json.loads(millrace("baseline", recipe, *words, "--json").stdout)
    return report, {each["name"]: {m: v["value"] for m, v in each["test"].items()} for each in report["baselines"]}


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """1,200 people: a class by two numbers, one of which a rule is about, and what somebody said of most of
    them."""
    folder = tmp_path_factory.mktemp("people")
    draw = np.random.default_rng(11)
    age, hours = draw.uniform(20, 70, 1200).round(1), draw.uniform(10, 60, 1200).round(1)
    rich = 0.1 * (age - 45) + 0.1 * (hours - 35) + draw.logistic(size=1200) > 1
    said = np.where(draw.random(1200) < 0.9, rich, ~rich)
    columns = {
        "age": age,
        "hours": hours,
        "rich": ["yes" if each else "no" for each in rich],
        "said": ["" if i % 5 == 0 else "yes" if each else "no" for i, each in enumerate(said)],
    }
    return plant(folder, columns, "rich", ["age", "hours"], more='[baseline]\nheuristic = "hours > 40 and age > 45"\nhuman = "said"\n'), columns


def test_classes_constant_rule_people_and_linear(millrace, people):
    recipe, columns = people
    report, of = measured(millrace, recipe)
    # Shares are those of the rows to test on, which --json does not list: they are near those of all.
    rich = np.array(columns["rich"]) == "yes"
    rule = (columns["hours"] > 40) & (columns["age"] > 45)
    assert of["constant"]["accuracy"] == pytest.approx(1 - rich.mean(), abs=0.05)
    assert of["heuristic"]["accuracy"] == pytest.approx((rule == rich).mean(), abs=0.05)
    assert of["human"]["accuracy"] == pytest.approx(0.9, abs=0.05)
    assert of["linear"]["accuracy"] > of["constant"]["accuracy"] + 0.1
    entropy = -(rich.mean() * np.log(rich.mean()) + (1 - rich.mean()) * np.log(1 - rich.mean()))
    assert of["constant"]["log-loss"] == pytest.approx(entropy, abs=0.03)
    # Answers are as sure as they are right in training.
    assert of["human"]["log-loss"] == pytest.approx(-(0.9 * np.log(0.9) + 0.1 * np.log(0.1)), abs=0.12)
    human = next(each for each in report["baselines"] if each["name"] == "human")
    assert re.search(r"of 2\d\d of 299 samples", human["note"]), human
    for each in report["baselines"]:
        for metric in each["test"].values():
            assert metric["low"] <= metric["value"] <= metric["high"]
    assert json.loads((recipe.parent / "planted.baseline.json").read_text())["baselines"] == report["baselines"]


def test_a_table_for_people(millrace, people):
    text = millrace("baseline", people[0]).stdout
    for name in ["constant", "heuristic", "human", "linear"]:
        assert re.search(rf"^  {name} +\d\d\.\d\d % \(\d\d\.\d\d to \d\d\.\d\d\)", text, re.M), text
    assert "planted.baseline.json: millrace train compares with it" in text
    assert "constant" in millrace("baseline", "--list").stdout
    part, of = measured(millrace, people[0], "--only", "constant,heuristic")
    assert set(of) == {"constant", "heuristic"} and "neighbours" not in part


def test_a_rule_that_is_the_target_is_right_everywhere(millrace, tmp_path):
    draw = np.random.default_rng(2)
    kind = draw.choice(["oak", "fir", "elm"], 400)
    columns = {"leaf": np.where(kind == "oak", "lobed", np.where(kind == "fir", "needle", "oval")), "size": draw.normal(size=400).round(3), "kind": kind}
    rules = "leaf = 'lobed' -> oak; leaf in ('needle') and size < 100 -> \\\"fir\\\"; elm"
    recipe = plant(tmp_path, columns, "kind", ["leaf", "size"], more=f'[baseline]\nheuristic = "{rules}"\n')
    _, of = measured(millrace, recipe, "--only", "heuristic")
    assert of["heuristic"]["accuracy"] == 1 and of["heuristic"]["log-loss"] < 0.05


def test_numbers_constant_formula_and_linear(millrace, tmp_path):
    draw = np.random.default_rng(4)
    rooms, income = draw.uniform(1, 9, 800).round(2), draw.uniform(1, 5, 800).round(2)
    price = (1000 * rooms + 5000 * income).round(0)
    columns = {"rooms": rooms, "income": income, "price": price}
    formula = "1000 * rooms + max(0, 5e3 * income)"
    recipe = plant(tmp_path, columns, "price", ["rooms", "income"], more=f'[baseline]\nheuristic = "{formula}"\n[eval]\nmetrics = ["mae", "rmse", "r2"]\n')
    _, of = measured(millrace, recipe)
    assert of["heuristic"]["mae"] < 1 and of["heuristic"]["r2"] > 0.999999
    assert of["constant"]["rmse"] == pytest.approx(price.std(), rel=0.1) and abs(of["constant"]["r2"]) < 0.05
    assert of["linear"]["r2"] > 0.999
    # Rules may give numbers, too; where none does, the mean stands.
    _, of = measured(millrace, recipe, "baseline.heuristic=rooms > 5 -> 1000 * rooms + 5000 * income", "--only", "heuristic")
    assert 0.3 < of["heuristic"]["r2"] < 0.95


def test_labels_pictures_and_texts(millrace, tmp_path):
    draw = np.random.default_rng(6)
    red, big = draw.random(300) < 0.3, draw.random(300) < 0.6
    tags = [f'"{",".join(["red"] * int(r) + ["big"] * int(b))}"' for r, b in zip(red, big)]
    columns = {"x": red + draw.normal(0, 0.1, 300).round(3), "y": big + draw.normal(0, 0.1, 300).round(3), "tags": tags}
    recipe = plant(tmp_path, columns, "tags", ["x", "y"], more="")
    recipe.write_text(recipe.read_text().replace('[output]', '[output]\nkind = "classes"'))
    _, of = measured(millrace, recipe)
    assert of["linear"]["label-accuracy"] > 0.97 > of["constant"]["label-accuracy"]
    (tmp_path / "texts").mkdir()
    lines = ["label\ttext"] + [f"{'spam' if i % 3 == 0 else 'ham'}\t{'win a prize' if i % 3 == 0 else 'see you'} number {i}" for i in range(300)]
    (tmp_path / "texts" / "rows.tsv").write_text("\n".join(lines) + "\n")
    text = tmp_path / "texts" / "text.toml"
    text.write_text(f'[data]\ntrain = "{tmp_path}/texts/rows.tsv"\ntest_share = 0.2\n')
    _, of = measured(millrace, text)
    assert of["constant"]["accuracy"] == pytest.approx(2 / 3, abs=0.12) and of["linear"]["accuracy"] > 0.95
    # Two orders of the same letters: only their runs tell them apart.
    rows = [f"{'good' if i % 2 else 'bad'}\t{'abab' if i % 2 else 'aabb'} {i % 10}" for i in range(300)]
    (tmp_path / "texts" / "rows.tsv").write_text("label\ttext\n" + "\n".join(rows) + "\n")
    assert measured(millrace, text, "--only", "linear")[1]["linear"]["accuracy"] > 0.95
    # Amounts that are mostly noise: what is learnt by heart is far worse than the mean.
    rows = [f"{i % 2 + draw.normal():.3f}\t{'good' if i % 2 else 'bad'} day number {draw.integers(1000)}" for i in range(400)]
    (tmp_path / "texts" / "rows.tsv").write_text("label\ttext\n" + "\n".join(rows) + "\n")
    _, of = measured(millrace, text, "--only", "constant,linear")
    assert of["linear"]["rmse"] < 1.15 * of["constant"]["rmse"]
    corpus = tmp_path / "texts" / "corpus.txt"
    corpus.write_text("the king sings to his horse\n" * 400)
    tokens = tmp_path / "texts" / "tokens.toml"
    tokens.write_text(f'[data]\ntrain = "{corpus}"\ntest_share = 0.2\n[input]\nkind = "tokens"\nlength = 32\n')
    _, of = measured(millrace, tokens)
    letters = np.array(list("the king sings to his horse\n"))
    shares = np.unique(letters, return_counts=True)[1] / len(letters)
    assert of["constant"]["log-loss"] == pytest.approx(-(shares * np.log(shares)).sum(), abs=0.02)
    assert set(of) >= {"constant", "linear"} and not of["linear"]


def test_pictures_and_texts_have_nearest_neighbours(millrace, tmp_path):
    """As scikit-learn's KNeighborsClassifier(5) of pixels, and of tf-idf by cosine, would: computed here."""
    draw = np.random.default_rng(5)
    pixels = {}
    for part, count in (("train", 120), ("test", 60)):
        for i in range(count):
            kind = i % 3
            values = np.clip(draw.normal(120, 60, (6, 6)), 0, 255)
            values[kind * 2:kind * 2 + 2] += 50
            values = np.clip(values, 0, 255).astype("uint8")
            folder = tmp_path / part / "abc"[kind]
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(values).save(folder / f"{i:03d}.png")
            pixels.setdefault(part, []).append((kind, values.astype(float).ravel()))
    recipe = tmp_path / "pictures.toml"
    recipe.write_text(f'[data]\ntrain = "{tmp_path}/train"\ntest = "{tmp_path}/test"\n[input]\nkind = "picture"\n[model]\nlayers = ["flatten", "linear 3"]\n[train]\nbatch = 16\n')
    _, of = measured(millrace, recipe, "--only", "nearest_neighbours")
    kinds, train = np.array([k for k, _ in pixels["train"]]), np.stack([v for _, v in pixels["train"]])
    right = 0
    for kind, values in pixels["test"]:
        votes = np.bincount(kinds[np.argsort(((train - values) ** 2).sum(1))[:5]], minlength=3)
        right += votes.argmax() == kind if (votes == votes.max()).sum() == 1 else 0.5
    assert of["nearest_neighbours"]["accuracy"] == pytest.approx(right / 60, abs=0.06)
    words = {"ham": "see you soon at home".split(), "spam": "win a prize at once".split()}
    lines = ["label\ttext"] + [f"{kind}\t{' '.join(draw.choice(words[kind], 3))} {draw.integers(1000)}" for i in range(300) for kind in [["ham", "spam"][i % 2]]]
    (tmp_path / "rows.tsv").write_text("\n".join(lines) + "\n")
    text = tmp_path / "text.toml"
    text.write_text(f'[data]\ntrain = "{tmp_path}/rows.tsv"\ntest_share = 0.2\n[output]\ncolumn = "label"\n')
    report, of = measured(millrace, text, "--only", "nearest_neighbours")
    assert of["nearest_neighbours"]["accuracy"] > 0.97 and report["baselines"][0]["note"] == "by their words"


def test_a_run_that_goes_on_is_compared_too(millrace, people):
    recipe, _ = people
    assert (recipe.parent / "planted.baseline.json").exists() or measured(millrace, recipe)
    run = recipe.parent / "goes-on"
    millrace("train", recipe, "train.optimizer={kind=sgd, lr=1e-6}", "--out", run)
    assert (run / "baseline.json").read_text() == (recipe.parent / "planted.baseline.json").read_text()
    text = millrace("train", run, "--resume", "train.epochs=4").stdout
    assert re.search(r"baseline: the network (loses to|is no better than) human in accuracy", text), text


def test_a_network_that_loses_to_a_line_is_told(millrace, people):
    recipe, _ = people
    # A rate that unlearns: the network ends worse than the constant.
    assert (recipe.parent / "planted.baseline.json").exists() or measured(millrace, recipe)
    text = millrace("train", recipe, "train.optimizer={kind=sgd, lr=1e-6}", "--out", recipe.parent / "loses").stdout
    assert re.search(r"baseline: the network (loses to|is no better than) human in accuracy: \d\d\.\d\d % against \d\d\.\d\d %", text), text
    found = json.loads(millrace("train", recipe, "--out", recipe.parent / "json", "--json").stdout)
    assert any("human" in line for line in found["baseline"])
    # Of other samples nothing is compared.
    text = millrace("train", recipe, "data.test_share=0.4", "train.epochs=1", "--out", recipe.parent / "other").stdout
    assert "is of other samples" in text and "loses" not in text


@pytest.mark.parametrize("noise", [True, False])
def test_noise_that_is_learnt_by_heart_is_suspected(millrace, tmp_path, noise):
    """Rows that come twice, their labels by chance; or by what no line can tell, but neighbours agree on."""
    draw = np.random.default_rng(8)
    x, y = draw.uniform(-1, 1, 400).round(4), draw.uniform(-1, 1, 400).round(4)
    x, y = np.repeat(x, 2), np.repeat(y, 2)
    odd = (x > 0) != (y > 0)
    label = draw.random(800) < 0.5 if noise else odd
    # A third column tells the twins apart by a hair, so that a network can learn them by heart.
    twin = (np.tile([0, 1], 400) * 1e-3 + draw.normal(size=800) * 0 + np.repeat(draw.normal(size=400), 2)).round(4)
    columns = {"x": x, "y": y, "z": twin, "label": np.where(label, "a", "b")}
    recipe = plant(tmp_path, columns, "label", ["x", "y", "z"], epochs=150)
    report, _ = measured(millrace, recipe)
    found = report["neighbours"]
    assert found["duplicates"] and found["near"] > 100
    assert (found["disagreement"] / found["chance"] > 0.7) == noise, found
    text = millrace("train", recipe, "model.width=256", "--out", tmp_path / "run").stdout
    assert ("may be noise by heart" in text) == noise, text


@pytest.mark.parametrize(
    "words, wanted",
    [
        (["baseline.heuristic=wealth > 3"], "there is no column 'wealth'"),
        (["baseline.heuristic=age > 3 -> maybe"], "'maybe' is none of the classes"),
        (["baseline.heuristic=age > -> yes; no"], "baseline.heuristic"),
        (["baseline.heuristic=yes; age > 3 -> no"], "which is always true"),
        (["baseline.human=nobody"], "'nobody'"),
        (["data.test_share=0"], "nothing to test on"),
        (["--only", "konstant"], "did you mean 'constant'?"),
        (["baseline.heuristics=age > 3"], "heuristic"),
    ],
)
def test_wrong_input_is_one_message(millrace, people, words, wanted):
    result = millrace("baseline", people[0], *words, code=1)
    assert wanted in result.stderr and result.stderr.count("error") == 1, result.stderr


def test_the_commands_of_its_page_run(millrace, people):
    page = (ROOT / "docs/baseline.md").read_text()
    lines = re.findall(r"^millrace baseline .*?(?=  |$)", page, re.M)
    assert len(lines) == 4
    for line in lines:
        assert millrace(*line.replace("RECIPE", str(people[0])).split()[1:]).stdout, line


def test_the_columns_of_people_are_no_input(millrace, people):
    text = millrace("explain", people[0], "input.columns=[]").stdout
    _, of = measured(millrace, people[0], "input.columns=[]", "--only", "linear")
    assert of["linear"]["accuracy"] < 0.87, text


def test_adult_and_houses(millrace, data, tmp_path):
    report, of = measured(millrace, "examples/adult-linear.toml", "--only", "constant,linear", "baseline.heuristic=c4 > 12")
    assert of["constant"]["accuracy"] == pytest.approx(0.7638, abs=1e-4) and of["linear"]["accuracy"] > 0.85
    assert rows_of(report) == 16281
    # Spectrograms, without what training hides of them.
    _, of = measured(millrace, "examples/spoken-digits.toml", "--only", "constant,linear")
    assert of["constant"]["accuracy"] < 0.2 and of["linear"]["accuracy"] > 0.5
    _, of = measured(millrace, "examples/houses.toml", "baseline.heuristic=50000 * median_income", "--only", "constant,heuristic,linear")
    assert of["linear"]["r2"] > 0.6 and 0.2 < of["heuristic"]["r2"] < of["linear"]["r2"]


def test_nothing_is_lost_to_how_calibrated_a_constant_is(millrace, people):
    recipe, _ = people
    own = recipe.parent / "calibrated.toml"
    own.write_text(recipe.read_text() + "[eval]\nmetrics = [\"accuracy\", \"ece\"]\n")
    report, of = measured(millrace, own)
    assert of["constant"]["ece"] < 0.2
    kept = recipe.parent / "calibrated.baseline.json"
    alone = json.loads(kept.read_text())
    alone["baselines"] = [each for each in alone["baselines"] if each["name"] == "constant"]
    kept.write_text(json.dumps(alone))
    text = millrace("train", own, "train.optimizer={kind=sgd, lr=1e-6}", "--out", recipe.parent / "calibrated").stdout
    assert "baseline: the network" in text and "in ece" not in text, text
