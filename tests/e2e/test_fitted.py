"""Models that are fitted to all samples at once, from the outside: the same verbs as for any other."""

import csv
import json
import random
import signal
import subprocess

import numpy as np
import onnxruntime
import pytest

KINDS = ["boosting", "naive_bayes", "nearest_neighbours"]
NUMBERS = [kind for kind in KINDS if kind != "naive_bayes"]


def write_rows(path, count, seed):
    """Fruit by weight, hue and where it grows; a weight is missing now and then."""
    draw = random.Random(seed)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["weight", "hue", "grows", "price", "fruit"])
        for _ in range(count):
            kind = draw.randrange(3)
            weight = draw.gauss([150, 120, 8][kind], [20, 15, 2][kind])
            grows = ["tree", "tree", "bush"][kind] if draw.random() < 0.9 else "field"
            price = 0.01 * weight + [0.2, 0.5, 3][kind]
            rows.writerow(
                ["" if draw.random() < 0.05 else f"{weight:.2f}", f"{draw.gauss(kind, 0.7):.3f}", grows, f"{price:.3f}", ["apple", "lemon", "berry"][kind]]
            )


@pytest.fixture
def table(tmp_path):
    write_rows(tmp_path / "fruit.csv", 400, 1)
    write_rows(tmp_path / "more.csv", 150, 2)

    def write(kind, column="fruit", more=""):
        leave_out = "price" if column == "fruit" else "fruit"
        (tmp_path / "recipe.toml").write_text(
            f"""
[data]
train = "{tmp_path / "fruit.csv"}"
test = "{tmp_path / "more.csv"}"
[input]
leave_out = ["{leave_out}"]
[output]
column = "{column}"
[model]
kind = "{kind}"
{more}
"""
        )
        return tmp_path / "recipe.toml"

    return write


def logits(millrace, run, *arguments):
    lines = millrace("predict", run, *arguments, "--json").stdout.splitlines()
    return np.array([json.loads(line)["logits"] for line in lines])


def of_onnx(path, table, leave_out):
    session = onnxruntime.InferenceSession(path)
    with table.open() as file:
        rows = [row for row in csv.DictReader(file)]
    columns = ["weight", "hue"]
    feed = {"numbers": np.array([[float(row[c]) if row[c] else np.nan for c in columns] for row in rows])}
    feed["grows"] = np.array([[row["grows"]] for row in rows])
    return session.run(None, feed)


@pytest.mark.parametrize("kind", KINDS)
def test_classes_are_told_by_all_verbs(millrace, table, tmp_path, kind):
    run = tmp_path / "run"
    told = millrace("train", table(kind), "--out", run).stdout
    assert "fitted to 400 rows" in told or "round" in told
    result = json.loads(millrace("eval", run, "--json").stdout)
    assert result["accuracy"] > 0.8
    found = logits(millrace, run, tmp_path / "more.csv")
    exported = of_onnx(run / "model.onnx", tmp_path / "more.csv", "price")[0]
    assert np.allclose(found, exported, rtol=1e-4, atol=1e-4)
    # A finished run goes on to nothing, and says the same.
    millrace("train", run, "--resume")
    assert np.array_equal(found, logits(millrace, run, tmp_path / "more.csv"))
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert metrics[-1]["test/accuracy"] == result["accuracy"]
    millrace("calibrate", run)
    assert "accuracy" in millrace("diff", run, run).stdout


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_are_told(millrace, table, tmp_path, kind):
    run = tmp_path / "run"
    millrace("train", table(kind, "price"), "--out", run)
    assert json.loads(millrace("eval", run, "--json").stdout)["r2"] > 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_about_steps_does_not_apply(millrace, table, tmp_path, kind):
    recipe = table(kind, more="[train]\nepochs = 3\nbatch = 64\n")
    for verb in ("lr-find", "estimate", "profile"):
        error = millrace(verb, recipe, code=1).stderr
        assert "fitted to all samples at once" in error, error
    told = millrace("train", recipe, "--out", tmp_path / "run").stdout
    assert "train.epochs, train.batch are not used" in told
    checks = json.loads(millrace("check", recipe, "--json").stdout)
    assert {each["verdict"] for each in checks["checks"] if each["group"] != "data"} == {"does-not-apply"}


@pytest.mark.parametrize("name, metric, least", [("adult-boosting", "roc-auc", 0.925), ("houses-boosting", "r2", 0.83)])
def test_the_examples_reach_what_they_should(millrace, data, tmp_path, name, metric, least):
    outcome = millrace("train", f"examples/{name}.toml", "--out", tmp_path / "run", "--json", env={"MILLRACE_DATA": str(data)})
    assert json.loads(outcome.stdout)["test"][metric] > least


def same_bits(one, other):
    """Of two runs: the newest checkpoint, and the best."""
    for name in ("best.safetensors", max(path.name for path in (one / "checkpoints").glob("step-*"))):
        assert (one / "checkpoints" / name).read_bytes() == (other / "checkpoints" / name).read_bytes(), name


def test_an_interrupted_boosting_goes_on_to_the_same_bits(binary, millrace, table, tmp_path):
    recipe = table("boosting", more="rounds = 400\nsubsample = 0.7\ncolsample_bytree = 0.7\n[train]\nkeep_best = 'log-loss'\n")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    millrace("train", recipe, "--out", whole)
    with subprocess.Popen([binary, "train", recipe, "--out", parts], stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout:
            if line.startswith("round 80 "):
                running.send_signal(signal.SIGINT)
    assert running.returncode == 130
    stopped = max(path.name for path in (parts / "checkpoints").glob("step-*"))
    assert "step-00000000" < stopped < "step-00000400"
    millrace("train", parts, "--resume")
    same_bits(whole, parts)
    logged = [[json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()] for run in (whole, parts)]
    assert len(logged[0]) == len(logged[1]) == 400
    for one, other in zip(*logged, strict=True):
        assert {k: v for k, v in one.items() if not k.startswith(("seconds", "system/"))} == {
            k: v for k, v in other.items() if not k.startswith(("seconds", "system/"))
        }


def test_boosting_stops_where_it_does_not_get_better(millrace, table, tmp_path):
    recipe = table("boosting", more="rounds = 500\n[train]\nkeep_best = 'log-loss'\nearly_stopping = 5\n")
    told = millrace("train", recipe, "--out", tmp_path / "run").stdout
    assert "log-loss has not become better for 5 tests" in told
    best = json.loads(millrace("eval", tmp_path / "run", "--checkpoint", "best", "--json").stdout)
    last = json.loads(millrace("eval", tmp_path / "run", "--json").stdout)
    assert best["log-loss"] < last["log-loss"]
    # Of several seeds their spread.
    several = json.loads(millrace("train", recipe, "model.subsample=0.5", "--seeds", "2", "--out", tmp_path / "seeds", "--json").stdout.splitlines()[-1])
    assert several["seeds"] == 2 and several["test"]["log-loss"]["deviation"] > 0


def test_other_losses_and_weights_of_classes_count(millrace, table, tmp_path):
    found = {}
    for name, changes in {"plain": [], "weighted": ["output.class_weights={ lemon = 20 }"]}.items():
        millrace("train", table("boosting"), "model.rounds=3", *changes, "--out", tmp_path / name)
        lines = millrace("predict", tmp_path / name, tmp_path / "more.csv", "--json").stdout.splitlines()
        found[name] = sum(json.loads(line)["class"] == "lemon" for line in lines)
    assert found["weighted"] > found["plain"]
    for loss in ("huber", "quantile"):
        run = tmp_path / loss
        millrace("train", table("boosting", "price"), f"output.loss={loss}", "--out", run)
        assert json.loads(millrace("eval", run, "--json").stdout)["r2"] > 0.8


def with_bad_price(millrace, table, tmp_path):
    text = (tmp_path / "fruit.csv").read_text().splitlines()
    (tmp_path / "fruit.csv").write_text("\n".join([*text[:5], text[5].replace(text[5].split(",")[3], "nan"), *text[6:]]) + "\n")
    return millrace("train", table("boosting", "price"), "--out", tmp_path / "d", code=1).stderr


def test_a_table_of_one_row_or_one_class_is_no_crash(millrace, table, tmp_path):
    rows = (tmp_path / "fruit.csv").read_text().splitlines()
    for kind in KINDS:
        (tmp_path / "fruit.csv").write_text("\n".join(rows[:2]) + "\n")
        result = millrace("train", table(kind), "data.test=", "--out", tmp_path / kind, code=None)
        assert result.returncode in (0, 1) and "Traceback" not in result.stderr
        assert result.returncode == 0 or "error: " in result.stderr


def test_what_a_fitted_model_cannot_be_given_is_refused(millrace, table, tmp_path):
    assert "not numbers" in millrace("train", table("naive_bayes", "price"), "--out", tmp_path / "a", code=1).stderr
    stream = millrace("train", table("nearest_neighbours"), "data.stream=true", "data.order=sequential", "data.epoch_samples=400", "--out", tmp_path / "b", code=1).stderr
    assert "data.stream" in stream and "at once" in stream
    unknown = millrace("train", table("naive_bayes"), "model.neighbours=3", "--out", tmp_path / "c", code=1).stderr
    assert "nearest_neighbours" in unknown
    for change in ("model.learning_rate=0", "model.subsample=1.5", "model.max_depth=-1", "model.rounds=0", "model.tree_method=magic"):
        assert change.split("=")[0] in millrace("train", table("boosting"), change, "--out", tmp_path / "d", code=1).stderr
    assert "did you mean 'model.learning_rate'" in millrace("train", table("boosting"), "model.learning_rat=0.1", "--out", tmp_path / "d", code=1).stderr
    assert "number" in with_bad_price(millrace, table, tmp_path)
    assert not (tmp_path / "d").exists()
    assert not (tmp_path / "a").exists() and not (tmp_path / "b").exists()


def test_trees_over_hours_say_the_same_exported(millrace, tmp_path):
    """Hours whose sines are equal differ in last bits, which are others in ONNX Runtime."""
    draw = random.Random(4)
    hours = [(day, hour) for day in range(1, 29) for hour in range(24)]
    with (tmp_path / "hours.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["when", "load"])
        rows.writerows([f"2023-05-{day:02d} {hour:02d}:00:00", f"{hour * hour + 9 * (day % 7) + draw.gauss(0, 5):.3f}"] for day, hour in hours)
    (tmp_path / "recipe.toml").write_text('[data]\ntrain = "hours.csv"\n[output]\ncolumn = "load"\n[model]\nkind = "boosting"\n')
    millrace("train", "recipe.toml", "--out", "run", cwd=tmp_path)
    millrace("export", "run", "hours.onnx", cwd=tmp_path)
    millrace("predict", "run", "hours.csv", "-o", "said.csv", cwd=tmp_path)
    with (tmp_path / "said.csv").open() as file:
        said = np.array([float(row["load"]) for row in csv.DictReader(file)])
    first = (np.datetime64("2023-05-01") - np.datetime64("1970-01-01")).astype(int)
    days = np.array([[first + day - 1 + hour / 24] for day, hour in hours])
    [values] = onnxruntime.InferenceSession(tmp_path / "hours.onnx").run(["values"], {"numbers": days})
    np.testing.assert_allclose(values.ravel(), said, atol=1e-3)
    assert np.corrcoef(said, [hour * hour for _, hour in hours])[0, 1] > 0.9


def test_small_targets_are_judged_as_the_file_has_them(millrace, tmp_path):
    # Zeros and thousandths beside 10^6: in standard deviations of f32 they are little more than rounding.
    draw = np.random.default_rng(2)
    x = draw.normal(size=400)
    y = np.where(draw.random(400) < 0.1, 0.0, np.round(np.exp(3 * x), 3))
    y[::40] = 1e6
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{a!r},{b!r}\n" for a, b in zip(x.tolist(), y.tolist())))
    (tmp_path / "r.toml").write_text(
        '[data]\ntrain = "t.csv"\ntest = "t.csv"\n[input]\ncolumns = ["x"]\n[output]\ncolumn = "y"\nkind = "number"\n'
        '[eval]\nmetrics = ["mape", "mae", "rmse", "r2", "pinball-50"]\n'
    )
    for model in ['{ kind = "boosting", rounds = 5 }', '"linear"']:
        run = tmp_path / f"run{len(model)}"
        millrace("train", "r.toml", f"model={model}", "train.epochs=1", "--out", run, cwd=tmp_path)
        told = json.loads(millrace("eval", run, "t.csv", "--json", cwd=tmp_path).stdout)
        lines = millrace("predict", run, "t.csv", "--json", cwd=tmp_path).stdout.splitlines()
        error = y - np.array([json.loads(line)["numbers"]["y"] for line in lines])
        wanted = {
            "mape": np.mean(np.abs(error) / np.maximum(np.abs(y), np.finfo(float).eps)),
            "mae": np.mean(np.abs(error)),
            "rmse": np.sqrt(np.mean(error**2)),
            "r2": 1 - np.sum(error**2) / np.sum((y - y.mean()) ** 2),
            "pinball-50": np.mean(np.abs(error)) / 2,
        }
        for name, value in wanted.items():
            assert told[name] == pytest.approx(value, rel=1e-6), (model, name)
