"""Rows in order: from LIBSVM and CSV to NDCG, predictions and the exported model; and who wins duels."""
import csv
import json
import math
import random
import re
import shlex
import shutil
import subprocess

import numpy as np
import pytest
from conftest import WINS, queries, write_duels, write_libsvm, write_rankings
from test_inputs import resumed

RECIPE = """
[data]
train = "{folder}/rank.train"
test  = "{folder}/rank.test"
[output]
kind = "rank"
loss = "{loss}"
[model]
kind  = "table"
width = 16
depth = 1
[train]
epochs = 8
batch  = 8
keep_checkpoints = 100
optimizer = {{ kind = "adamw", lr = 5e-3 }}
[eval]
batch = 20
"""


def write_csv(path, rows, labelled=True, shuffled=None):
    rows = list(rows)
    if shuffled is not None:
        random.Random(shuffled).shuffle(rows)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["search", *(["stars"] if labelled else []), *(f"f{i}" for i in range(len(rows[0][1])))])
        writer.writerows([f"s{query}", *([grade] if labelled else []), *x] for query, x, grade in rows)
    return rows


def ndcg(scores, grades, k=10):
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    gain = lambda rows: sum((2 ** grades[i] - 1) / math.log2(place + 2) for place, i in enumerate(rows[:k]))
    best = gain(sorted(range(len(scores)), key=lambda i: -grades[i]))
    return gain(order) / best if best > 0 else None


@pytest.fixture(scope="module")
def rankings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rankings")
    write_rankings(folder)
    return folder


@pytest.fixture(scope="module")
def ranked(binary, rankings):
    (rankings / "r.toml").write_text(RECIPE.format(folder=rankings, loss="lambdarank"))
    subprocess.run([binary, "train", rankings / "r.toml", "--out", rankings / "run"], check=True, capture_output=True)
    return rankings / "run"


def read_lines(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_rows_of_libsvm_are_put_in_order(millrace, rankings, ranked):
    found = json.loads(millrace("eval", ranked, "--json").stdout)
    grades, sizes = [int(line.split()[0]) for line in open(rankings / "rank.test")], [int(line) for line in open(rankings / "rank.test.query")]
    told = read_lines(millrace("predict", ranked, rankings / "rank.test", "--json"))
    assert [len(query["scores"]) for query in told] == sizes
    assert [row for query in told for row in query["rows"]] == list(range(len(grades)))
    values = [ndcg(query["scores"], [grades[row] for row in query["rows"]]) for query in told]
    values = [value for value in values if value is not None]
    assert math.isclose(found["ndcg-10"], sum(values) / len(values), rel_tol=1e-9)
    assert found["ndcg-10"] > 0.75  # 0.6 by chance
    for query in told:
        assert query["order"] == sorted(range(len(query["scores"])), key=lambda i: -query["scores"][i])
    text = millrace("predict", ranked, rankings / "rank.test", "--top", 1).stdout.splitlines()
    assert len(text) == len(sizes)
    assert re.fullmatch(r".*rank\.test: query 0: row \d+ \(\S+\)( … of \d+)?", text[0])


def test_a_query_is_ranked_alike_whatever_is_beside_it(millrace, rankings, ranked, tmp_path):
    """Also without relevances to speak of, with qid in the rows, and where the last features occur in no
    row."""
    rows = [row for row in queries(25, 2)]
    told = read_lines(millrace("predict", ranked, rankings / "rank.test", "--json"))
    some = [(query, x[:4] + [0, 0], 0) for query, x, _ in rows if query in (3, 7)]
    write_libsvm(tmp_path / "some", [(query, x, 0) for query, x, _ in rows if query in (3, 7)], qid=True)
    alone = read_lines(millrace("predict", ranked, tmp_path / "some", "--json"))
    assert [query["input"] for query in alone] == [f"{tmp_path}/some: query {query}" for query in (103, 107)]
    for mine, wanted in zip(alone, (told[3], told[7])):
        assert np.allclose(mine["scores"], wanted["scores"], rtol=1e-5, atol=1e-6)
    write_libsvm(tmp_path / "fewer", some, qid=True)
    assert len(read_lines(millrace("predict", ranked, tmp_path / "fewer", "--json"))) == 2


def test_an_exported_model_gives_the_scores_that_predict_gives(millrace, rankings, ranked, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    millrace("export", ranked, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    told = read_lines(millrace("predict", ranked, rankings / "rank.test", "--json"))
    rows = queries(25, 2)
    for number, query in enumerate(told):
        numbers = np.full((1, 14, 6), np.nan)
        own = [x for each, x, _ in rows if each == number]
        numbers[0, : len(own)] = own
        scores = session.run(["scores"], {"numbers": numbers})[0]
        assert np.allclose(scores[0, : len(own)], query["scores"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", ["pair-logit", "list-softmax", "query-rmse"])
def test_each_loss_learns_an_order(millrace, rankings, tmp_path, loss):
    (tmp_path / "r.toml").write_text(RECIPE.format(folder=rankings, loss=loss))
    millrace("train", tmp_path / "r.toml", "--out", tmp_path / "run")
    assert json.loads(millrace("eval", tmp_path / "run", "--json").stdout)["ndcg-10"] > 0.75


# ---- decision trees ----------------------------------------------------------------------------------------

TREES = """
[data]
train = "{folder}/rank.train"
test  = "{folder}/rank.test"
[output]
kind = "rank"
loss = "{loss}"
[model]
kind             = "boosting"
rounds           = 30
max_depth        = 3
min_child_weight = 0.01
subsample        = 0.8
[train]
keep_checkpoints = 100
[eval]
batch = 20
"""


@pytest.fixture(scope="module")
def grown(binary, rankings):
    (rankings / "trees.toml").write_text(TREES.format(folder=rankings, loss="lambdarank"))
    told = subprocess.run([binary, "train", rankings / "trees.toml", "--out", rankings / "trees"], check=True, capture_output=True, text=True)
    return rankings / "trees", told.stdout


def mean_ndcg(told, grades, k=10):
    """Trees give rows equal scores: these share their places."""
    found = []
    for query in told:
        own, scores = [2 ** grades[row] - 1 for row in query["rows"]], query["scores"]
        discount = lambda place: 1 / math.log2(place + 2) if place < k else 0
        best, sum_of_gains = sum(gain * discount(place) for place, gain in enumerate(sorted(own, reverse=True))), 0
        for score in set(scores):
            first, equal = sum(other > score for other in scores), scores.count(score)
            gain = sum(gain for gain, other in zip(own, scores) if other == score) / equal
            sum_of_gains += gain * sum(discount(place) for place in range(first, first + equal))
        if best > 0:
            found.append(sum_of_gains / best)
    return sum(found) / len(found)


def test_trees_put_rows_in_order(millrace, rankings, grown):
    run = grown[0]
    found = json.loads(millrace("eval", run, "--json").stdout)
    grades = [int(line.split()[0]) for line in open(rankings / "rank.test")]
    told = read_lines(millrace("predict", run, rankings / "rank.test", "--json"))
    assert math.isclose(found["ndcg-10"], mean_ndcg(told, grades), rel_tol=1e-9)
    assert found["ndcg-10"] > 0.75
    # What the last round said of the test set, which it knows from its own margins.
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    assert math.isclose(last["test/ndcg-10"], found["ndcg-10"], rel_tol=1e-5)
    told = read_lines(millrace("predict", run, rankings / "rank.train", "--json"))
    grades = [int(line.split()[0]) for line in open(rankings / "rank.train")]
    assert math.isclose(last["train/ndcg-10"], mean_ndcg(told, grades), rel_tol=1e-5)


def test_trees_of_rankings_go_on_to_the_same_bits(millrace, grown, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(grown[0], run)
    recipe = (run / "recipe.toml").read_text()
    half = tmp_path / "half"
    (tmp_path / "half.toml").write_text(recipe)
    millrace("train", tmp_path / "half.toml", "model.rounds=11", "--out", half)
    # As a run that was killed after its eleventh round.
    shutil.copy(run / "recipe.toml", half / "recipe.toml")
    assert "going on from step 11 of 30" in millrace("train", half, "--resume").stdout
    last = sorted((run / "checkpoints").iterdir())[-1].name
    assert (half / "checkpoints" / last).read_bytes() == (run / "checkpoints" / last).read_bytes()


def test_exported_trees_give_the_scores_that_predict_gives(millrace, rankings, grown, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    millrace("export", grown[0], tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    rows = queries(25, 2)
    for number, query in enumerate(read_lines(millrace("predict", grown[0], rankings / "rank.test", "--json"))):
        # As LIBSVM's rows are read: splits are at values that training had, so a last bit would go the other
        # way.
        own = np.array([x for each, x, _ in rows if each == number], dtype=np.float32).astype(np.float64)
        scores = session.run(["scores"], {"numbers": own[None]})[0]
        assert np.allclose(scores[0], query["scores"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", ["pair-logit", "list-softmax", "query-rmse"])
def test_trees_learn_by_each_loss(millrace, rankings, tmp_path, loss):
    (tmp_path / "r.toml").write_text(TREES.format(folder=rankings, loss=loss))
    millrace("train", tmp_path / "r.toml", "--out", tmp_path / "run")
    assert json.loads(millrace("eval", tmp_path / "run", "--json").stdout)["ndcg-10"] > 0.75


def test_trees_of_queries_with_texts_weights_and_shuffled_rows(millrace, tmp_path):
    """A weight is that of its query; categories are columns; a query of one row and an equal one teach
    nothing."""
    rows = write_csv(tmp_path / "rows.csv", queries(60, 1), shuffled=4)
    with open(tmp_path / "rows.csv", newline="") as file:
        lines = list(csv.reader(file))
    draw = random.Random(5)
    lines = [[*line, "site", "heavy"] if at == 0 else [*line, draw.choice(["a", "b", "c"]), 1 + int(line[0][1:]) % 3]
             for at, line in enumerate(lines)]
    lines += [["s900", 2, *[0.5] * 6, "a", 1], *[["s901", 1, *[0.1 * i] * 6, "b", 1] for i in range(3)]]
    with open(tmp_path / "rows.csv", "w", newline="") as file:
        csv.writer(file).writerows(lines)
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'[data]\ntrain = "{tmp_path}/rows.csv"\ntest_share = 0.3\ngroup = "search"\nsample_weight = "heavy"\n[output]\nkind = "rank"\ncolumn = "stars"\n'
                      '[model]\nkind = "boosting"\nrounds = 10\nmin_child_weight = 0.01\n')
    told = millrace("train", recipe, "--out", tmp_path / "run").stdout
    assert "queries to test on" in told
    assert json.loads(millrace("eval", tmp_path / "run", "--json").stdout)["ndcg-10"] > 0.65
    assert len(read_lines(millrace("predict", tmp_path / "run", tmp_path / "rows.csv", "--json"))) == 62
    unweighted = recipe.read_text().replace('sample_weight = "heavy"\n', "")
    recipe.write_text(unweighted)
    millrace("train", recipe, "input.leave_out=heavy", "--out", tmp_path / "plain")
    weighed, plain = (read_lines(millrace("predict", tmp_path / run, tmp_path / "rows.csv", "--json"))[0]["scores"] for run in ("run", "plain"))
    assert weighed != plain


def test_trees_beside_other_models_of_rankings(millrace, rankings, tmp_path):
    (tmp_path / "r.toml").write_text(TREES.format(folder=rankings, loss="lambdarank").replace("boosting", "naive_bayes").split("rounds")[0])
    refused = millrace("train", tmp_path / "r.toml", "--out", tmp_path / "run", code=1).stderr
    assert "table" in refused and "boosting" in refused


def test_tables_by_any_column_of_queries(millrace, tmp_path):
    """Rows of a query need not stand together; a weight is that of its query; test_share keeps whole
    queries."""
    rows = write_csv(tmp_path / "rows.csv", queries(60, 1), shuffled=4)
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'[data]\ntrain = "{tmp_path}/rows.csv"\ntest_share = 0.3\ngroup = "search"\n[output]\nkind = "rank"\ncolumn = "stars"\n'
                      '[model]\nkind = "table"\nwidth = 8\ndepth = 1\n[train]\nbatch = 4\nepochs = 3\n')
    trained = millrace("train", recipe, "--out", tmp_path / "run").stdout
    shown = (tmp_path / "run/recipe.toml").read_text()
    assert 'group = "search"' in shown and 'kind = "queries"' in shown
    assert re.search(r"queries to test on", trained)
    write_csv(tmp_path / "new.csv", rows, labelled=False)
    told = read_lines(millrace("predict", tmp_path / "run", tmp_path / "new.csv", "--json"))
    assert len(told) == 60 and sorted(row for query in told for row in query["rows"]) == list(range(len(rows)))
    for query in told[:10]:
        assert len({rows[row][0] for row in query["rows"]}) == 1
    # A file says, too, which rows its scores are of.
    millrace("predict", tmp_path / "run", tmp_path / "new.csv", "-o", tmp_path / "told.jsonl")
    for line, query in zip((tmp_path / "told.jsonl").read_text().splitlines(), told, strict=True):
        assert json.loads(json.loads(line)["rows"]) == query["rows"] and json.loads(json.loads(line)["order"]) == query["order"]


def test_a_run_that_goes_on_gives_the_bits_of_one_that_never_stopped(millrace, rankings, ranked, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(ranked, run)
    checkpoints = sorted((run / "checkpoints").iterdir())
    assert len(checkpoints) > 3
    for path in checkpoints[3:]:
        path.unlink()
    step = int(checkpoints[2].stem.removeprefix("step-"))
    assert f"going on from step {step} of" in millrace("train", run, "--resume", "--threads", 1).stdout
    last = checkpoints[-1].relative_to(run / "checkpoints")
    assert (run / "checkpoints" / last).read_bytes() == (ranked / "checkpoints" / last).read_bytes()


def test_what_does_not_go_together_is_refused(millrace, rankings, tmp_path):
    write_csv(tmp_path / "rows.csv", queries(20, 1))
    def refused(text, *more):
        (tmp_path / "r.toml").write_text(text)
        return millrace("train", tmp_path / "r.toml", "train.batch=4", *more, "--out", tmp_path / "run", code=1).stderr
    data = f'[data]\ntrain = "{tmp_path}/rows.csv"\n'
    rank = '[output]\nkind = "rank"\ncolumn = "stars"\n'
    assert "Set data.group" in refused(data + rank)
    assert 'group names' in refused(data + 'group = "serch"\n' + rank) or "search" in refused(data + 'group = "serch"\n' + rank)
    assert 'input.kind = "queries"' in refused(data + 'group = "search"\n[input]\nkind = "table"\n' + rank)
    assert 'output.kind = "rank"' in refused(data + 'group = "search"\n[output]\nkind = "number"\ncolumn = "stars"\n')
    both = '[outputs.a]\nkind = "rank"\ncolumn = "stars"\n[outputs.b]\nkind = "rank"\ncolumn = "f5"\n'
    assert "no other output" in refused(data + 'group = "search"\n' + both)
    assert "leave data.stream out" in refused(data + 'stream = true\norder = "sequential"\ngroup = "search"\n' + rank, "train.steps=2")
    assert "has no stars" in refused_rows(tmp_path, refused, rank, "s1,,1,2,3,4,5,6")
    assert "relevances are numbers from 0" in refused_rows(tmp_path, refused, rank, "s1,-2,1,2,3,4,5,6")


def refused_rows(folder, refused, rank, row):
    lines = (folder / "rows.csv").read_text().splitlines()
    (folder / "odd.csv").write_text("\n".join([*lines, row]) + "\n")
    return refused(f'[data]\ntrain = "{folder}/odd.csv"\ngroup = "search"\n' + rank)


def test_real_queries(millrace, data, tmp_path):
    """201 queries of 300 features: better than by chance (0.53) by far after two epochs."""
    millrace("train", "examples/ranking.toml", "train.epochs=2", "--out", tmp_path / "run")
    assert json.loads(millrace("eval", tmp_path / "run", "--json").stdout)["ndcg-10"] > 0.68
    drafted = millrace("init", data / "ranking/rank.train").stdout
    assert 'kind = "rank"' in drafted and 'group = "query"' in drafted


# ---- duels -------------------------------------------------------------------------------------------------

DUELS = """
[data]
train = "{train}"
header = "yes"
[input]
kind = "duel"
[output]
kind = "duel"
[train]
epochs = 100
optimizer = "lbfgs"
[eval]
batch = 100
"""
LIKELIEST = {"Anna": 0.638694, "Bert": 0.159132, "Cleo": 0.202174}


def test_strengths_are_the_likeliest_ones(millrace, tmp_path):
    write_duels(tmp_path / "duels.csv")
    (tmp_path / "d.toml").write_text(DUELS.format(train=tmp_path / "duels.csv"))
    millrace("train", tmp_path / "d.toml", "--out", tmp_path / "run")
    told = {each["input"]: each["probability"] for each in read_lines(millrace("predict", tmp_path / "run", "*", "--json"))}
    assert told.keys() == LIKELIEST.keys()
    for name, strength in LIKELIEST.items():
        assert math.isclose(told[name], strength, abs_tol=1e-5)
    won = read_lines(millrace("predict", tmp_path / "run", "Anna against Bert", "--json"))[0]["probability"]
    assert math.isclose(won, told["Anna"] / (told["Anna"] + told["Bert"]), abs_tol=1e-5)
    assert "is in none of the duels" in millrace("predict", tmp_path / "run", "Anna against Ber", code=1).stderr
    found = json.loads(millrace("eval", tmp_path / "run", tmp_path / "duels.csv", "--json").stdout)
    wanted = -sum(times * math.log(LIKELIEST[w] / (LIKELIEST[w] + LIKELIEST[l])) for (w, l), times in WINS.items()) / 14
    assert math.isclose(found["log-loss"], wanted, rel_tol=1e-4)


def test_a_resumed_training_of_duels_equals_the_uninterrupted_one(millrace, tmp_path):
    write_duels(tmp_path / "duels.csv")
    (tmp_path / "d.toml").write_text(DUELS.format(train=tmp_path / "duels.csv"))
    changes = ("train.optimizer={ kind = \"adam\", lr = 0.05 }", "train.batch=4", "train.epochs=6", "train.checkpoint_steps=2", "train.keep_checkpoints=100")
    millrace("train", tmp_path / "d.toml", *changes, "--out", tmp_path / "run")
    resumed(millrace, tmp_path / "run", tmp_path / "copy")


def test_duels_may_be_counted(millrace, tmp_path):
    rows = [f"{winner},{loser},{times}" for (winner, loser), times in WINS.items()]
    (tmp_path / "duels.csv").write_text("\n".join(["winner,loser,times", *rows]) + "\n")
    (tmp_path / "d.toml").write_text(DUELS.format(train=tmp_path / "duels.csv").replace("[input]", 'sample_weight = "times"\n[input]'))
    millrace("train", tmp_path / "d.toml", "--out", tmp_path / "run")
    told = read_lines(millrace("predict", tmp_path / "run", "*", "--json"))
    for each in told:
        assert math.isclose(each["probability"], LIKELIEST[each["input"]], abs_tol=1e-5)


def test_duels_that_say_nothing_are_refused_or_told(millrace, tmp_path):
    def trained(rows, code):
        (tmp_path / "duels.csv").write_text("\n".join(["winner,loser", *rows]) + "\n")
        (tmp_path / "d.toml").write_text(DUELS.format(train=tmp_path / "duels.csv").replace("100", "3"))
        result = millrace("train", tmp_path / "d.toml", "--out", tmp_path / f"run{len(rows)}{code}", code=code)
        return result.stdout + result.stderr

    assert "'Anna' against itself" in trained(["Anna,Anna", "Anna,Bert"], 1)
    assert "a name is missing" in trained(["Anna,", "Anna,Bert"], 1)
    assert "2 of 2 names have won, or lost, all their duels (Anna, Bert)" in trained(["Anna,Bert", "Anna,Bert", "Anna,Bert"], 0)


# ---- docs/ranking.md ---------------------------------------------------------------------------------------


def test_commands_of_the_page_about_rankings_run_in_their_order(millrace, tmp_path):
    from test_docs import blocks, commands

    write_rankings(tmp_path)
    (tmp_path / "ranking").symlink_to(tmp_path)
    for name, text in zip(("ranking.toml", "trees.toml", "duels.toml"), blocks("docs/ranking.md", "toml"), strict=True):
        (tmp_path / name).write_text(text)
    lines = commands("docs/ranking.md")
    assert len(lines) >= 10
    for line in lines:
        assert millrace(*shlex.split(line)[1:], cwd=tmp_path, env={"MILLRACE_DATA": str(tmp_path)}).stdout, line
    assert (tmp_path / "ranked.onnx").exists()


def test_kinds_that_go_with_groups_are_named(millrace, tmp_path):
    (tmp_path / "x.csv").write_text("q,x,y\n" + "".join(f"{i // 4},{i % 7},{i % 3}\n" for i in range(40)))
    (tmp_path / "x.toml").write_text('[data]\ntrain = "x.csv"\n[output]\ncolumn = "y"\n')
    said = [millrace("train", "x.toml", *change, cwd=tmp_path, code=1).stderr
            for change in (["data.group=q", "output.kind=number"], ["data.group=q", "output.kind=rank", "input.kind=table"], ["input.kind=queries"])]
    assert 'set output.kind = "rank", or leave data.group out' in said[0]
    assert 'set input.kind = "queries", or leave data.group out' in said[1]
    assert 'is of rows that belong together: say which column tells that, as data.group = "query"' in said[2]
