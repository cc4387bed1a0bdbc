"""The pages: their commands run, their recipes train, their code is compiled, and what they name is there.

docs/profile.md's commands are run by test_profile.py, docs/text.md's by test_text.py, docs/ranking.md's by
test_ranking.py, docs/predict.md's by test_predict.py. Not run: PyTorch itself (bench/peers) or a bare machine
(tools/bare_debian.sh), and ./dev's verbs, of which this is a part; those are only looked up.
"""
import gzip
import importlib
import io
import json
import re
import shlex
import shutil
import struct
import subprocess
import tarfile
import tomllib

import numpy as np
import pytest
from conftest import ROOT, write_rankings, write_samples, write_texts
from PIL import Image

PAGES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
SHORT = ["train.batch=32", "eval.batch=40"]  # appended to what would train for long


def blocks(page, language=""):
    # Text, language, block, "", text …
    parts = re.split(r"^```(\w*)\n", (ROOT / page).read_text(), flags=re.M)
    return [parts[i + 1] for i in range(1, len(parts), 4) if parts[i] == language]


def commands(page, program="millrace"):
    """The command lines in a page's blocks, without the remark after them."""
    lines = [re.split(r" {2,}", line)[0] for block in blocks(page) for line in block.splitlines()]
    return [line for line in lines if line.startswith(program)]


def prose(page):
    return re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.M | re.S)


def spans(page):
    """What stands between backquotes within a line of text."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def jpeg(random, label):
    pixels = (random.integers(0, 60, (32, 32, 3)) + 18 * label).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG")
    return out.getvalue()


def write_idx(path, array):
    header = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


@pytest.fixture(scope="session")
def desk(binary, tmp_path_factory):
    """A newcomer's folder: examples/, data/letters, a picture, and small data sets where MILLRACE_DATA
    points."""
    folder = tmp_path_factory.mktemp("desk")
    random = np.random.default_rng(1)
    (folder / "examples").symlink_to(ROOT / "examples")
    subprocess.run([binary, "letters", folder / "data/letters", "--train", "700", "--test", "100"], check=True, capture_output=True)
    (folder / "shared/cifar10").mkdir(parents=True)
    for split, count in (("train", 32), ("test", 8)):
        with tarfile.open(folder / f"shared/cifar10/{split}.tar", "w") as tar:
            for label in range(10):
                for number in range(count):
                    info = tarfile.TarInfo(f"{split}/class{label}/{number:04}.jpg")
                    data = jpeg(random, label)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    (folder / "shared/mnist").mkdir()
    for name, count in (("train", 320), ("t10k", 80)):
        write_idx(folder / f"shared/mnist/{name}-images-idx3-ubyte.gz", random.integers(0, 256, (count, 28, 28)))
        write_idx(folder / f"shared/mnist/{name}-labels-idx1-ubyte.gz", np.arange(count) % 10)
    (folder / "shared/tabular").mkdir()
    names = "longitude,latitude,housing_median_age,total_rooms,total_bedrooms,population,households,median_income,median_house_value,ocean_proximity"
    values = random.uniform(1, 9, (400, 8))
    rows = [",".join(f"{v:.2f}" for v in row) + f",{50_000 * row[7]:.1f},{'INLAND' if row[0] < 5 else 'NEAR BAY'}" for row in values]
    (folder / "shared/tabular/california-housing.csv").write_text("\n".join([names, *rows]) + "\n")
    (folder / "cat.jpg").write_bytes(jpeg(random, 3))
    write_texts(folder)
    (folder / "shared/text").mkdir()
    (folder / "shared/text/tinyshakespeare.txt").write_text((folder / "corpus.txt").read_text())
    write_samples(folder)
    shutil.copy(ROOT / "tests/e2e/onnx_training/model.onnx", folder / "pretrained.onnx")
    (folder / "shared/ranking").mkdir()
    write_rankings(folder / "shared/ranking")
    return folder


@pytest.fixture
def at_desk(millrace, desk, tmp_path_factory):
    def run(line, *more):
        words = shlex.split(line)
        assert words[0] == "millrace"
        return millrace(*words[1:], *more, cwd=desk, env={"MILLRACE_DATA": str(desk / "shared")}).stdout

    return run


def test_commands_of_the_readme_run_in_their_order(at_desk, desk):
    lines = commands("README.md")
    assert len(lines) >= 9
    for line in lines:
        line = line.replace("PICTURES OUT", "data/letters packed").replace("OUT/", "packed/")
        long = "cifar10.toml" in line
        if " scale " in line:
            assert at_desk(line, "train.epochs=1", *SHORT, "--out", "runs/curve"), line
            continue
        once = ["train.epochs=1"] if "train " in line and "epochs" not in line else []
        less = ["train.steps=10", "train.batch=8"] if "train examples/shakespeare" in line else ["--steps", "20"] if " lr-find " in line else []
        assert at_desk(line, *(SHORT + once if long else []), *less), line
    assert (desk / "runs/cifar10-1/model.onnx").exists() and (desk / "model.onnx").exists()


def test_commands_of_the_page_of_recipes_run(at_desk, desk):
    at_desk("millrace train examples/letters.toml --out run", *SHORT, "train.epochs=0.5")
    picture = next((desk / "data/letters/test/G").iterdir()).relative_to(desk)
    lines = commands("docs/recipes.md")
    assert len(lines) >= 6
    for line in lines:
        line = line.replace("RUN", "run").replace("PICTURE…", f"{picture} {picture}")
        line = line.replace("RECIPE", "examples/letters.toml").replace("DATA", "data/letters/test")
        # Without and with what is optional.
        for words in (re.sub(r" \[.*?\]", "", line), re.sub(r"[\[\]]", "", line)):
            assert at_desk(words), words
    spoken = [span for span in spans("docs/recipes.md") if re.match(r"millrace \w+ [^-]", span)]
    assert spoken == ["millrace train RUN --resume"]
    assert "done: run" in at_desk("millrace train run --resume")


def test_commands_of_the_page_about_recovery_run_in_their_order(at_desk, desk):
    lines = commands("docs/recovery.md")
    assert len(lines) >= 4
    for line in lines:
        assert at_desk(line, *(SHORT if "train examples" in line else [])), line


def test_recipes_on_the_pages_train(at_desk, desk):
    recipes = [(page, text) for page in PAGES for text in blocks(page, "toml")]
    assert len(recipes) >= 2
    for number, (page, text) in enumerate(recipes):
        assert "data" in tomllib.loads(text), page
        (desk / f"page{number}.toml").write_text(text)
        assert "done: " in at_desk(f"millrace train page{number}.toml", *SHORT, "train.epochs=0.2"), page


def test_commands_of_the_page_about_moving_run_in_their_order(at_desk, desk):
    lines = commands("docs/moving.md")
    assert len(lines) >= 11
    for line in lines:
        assert at_desk(line, *(SHORT if "train " in line and "--out moved" in line else [])), line
    assert (desk / "batch.png").exists()


def test_what_is_compared_with_peers_runs(at_desk):
    lines = commands("docs/results.md", ".venv/bin/python bench/peers/bench.py")
    assert len(lines) >= 2
    for line in lines:
        ours = shlex.split(line)[-1]
        assert re.search(r"items/s [\d.]+\n$", at_desk(ours.removeprefix("build/release/"), "--seconds", "0.1")), line


def test_examples_train_as_the_page_of_results_says(at_desk):
    lines = [span for span in spans("docs/results.md") if span.startswith("millrace train")]
    assert {re.search(r"examples/\w+", line)[0] for line in lines} >= {"examples/cifar10", "examples/mnist", "examples/letters"}
    for line in lines:
        assert "done: " in at_desk(line, *SHORT, "train.epochs=0.2"), line


def test_every_table_of_results_says_what_makes_it_and_where_it_is_from():
    listed = subprocess.run([ROOT / "dev", "bench", "--list"], check=True, capture_output=True, text=True).stdout
    known = {line.split()[0] for line in listed.splitlines()}
    page = (ROOT / "docs/results.md").read_text()
    made = set()
    for table in re.finditer(r"(?:^\|.*\n)+", page, re.M):
        marker = re.fullmatch(r"<!-- \./dev bench (\S+)( on [^>]+)? -->", page[: table.start()].splitlines()[-1])
        assert marker, table[0].splitlines()[0]
        assert re.fullmatch(r"\*.*commits? [0-9a-f]{7,}.*\*", page[table.end() :].splitlines()[1]), table[0].splitlines()[0]
        made.add(marker[1])
    assert made == known


def test_a_table_replaces_its_like_and_no_other(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    results = importlib.import_module("results")
    page = tmp_path / "results.md"
    monkeypatch.setattr(results, "PAGE", page)
    before = (ROOT / "docs/results.md").read_text()
    page.write_text(before)
    text = results.markdown([["", "a"], ["b", None]])
    assert text == "| | a |\n|---|---|\n| b |  |\n"
    for cpu, marker in (("AMD EPYC", "networks"), ("Intel(R) Xeon(R)", "networks on Xeon")):
        results.write("networks", text, f"*{cpu}, 2 threads*")
        after = page.read_text()
        assert f"<!-- ./dev bench {marker} -->\n{text}\n*{cpu}, 2 threads*\n" in after
    tables = [match["name"] for match in results.MARKED.finditer(before)]
    assert [match["name"] for match in results.MARKED.finditer(page.read_text())] == tables
    untouched = [match[0] for match in results.MARKED.finditer(before) if match["name"] != "networks"]
    assert all(each in page.read_text() for each in untouched)


def test_changes_of_recipe_keys_on_the_page_are_taken(at_desk):
    changes = [span for span in spans("docs/recipes.md") if re.match(r"(data|inputs?|outputs?|model|train|eval)\.\w+=", span)]
    assert len(changes) >= 4
    for change in changes:
        at_desk("millrace explain examples/letters.toml", change)


def rows_of_table(page, head):
    """The cells of the table with that head, by the word in the first."""
    table = re.split(rf"^\| `{head}` \|.*\n\|-.*\n", prose(page), flags=re.M)[1].split("\n\n")[0]
    rows = [re.split(r" *\| *", line)[1:-1] for line in table.splitlines()]
    return {row[0].strip('`"'): row[1:] for row in rows}


def keys_of_kinds(help_text, section):
    """Of each kind the keys that it declares."""
    blocks = re.findall(rf'^{section}.kind = "(\S+)":.*\n((?:  .*\n)*)', help_text, re.M)
    return {kind: re.findall(rf"^  {section}\.(\w+)", keys, re.M) for kind, keys in blocks}


def test_tables_of_kinds_on_the_page_of_recipes_are_what_the_kinds_declare(millrace, tmp_path):
    help_text = millrace("train", "--help").stdout
    named = {kind: re.findall(r"`(\w+)`", row[1]) for kind, row in rows_of_table("docs/recipes.md", "input.kind").items()}
    declared = keys_of_kinds(help_text, "input")
    assert named == {kind: [key for key in keys if key != "column"] for kind, keys in declared.items()}

    page = rows_of_table("docs/recipes.md", "output.kind")
    declared = keys_of_kinds(help_text, "output")
    assert page.keys() == declared.keys()
    section = (ROOT / "docs/recipes.md").read_text().split("## Outputs")[1].split("## Several")[0]
    (tmp_path / "r.toml").write_text('[data]\ntrain = "x"\n')
    for kind, (targets, losses, metrics) in page.items():
        assert all(f"`{key}`" in targets or f"`output.{key}`" in section for key in declared[kind]), kind
        other = {"number": ("cross-entropy", "accuracy")}.get(kind, ("mse", "mae"))
        said = [millrace("train", "r.toml", f"output.kind={kind}", change, cwd=tmp_path, code=1).stderr.strip()
                for change in (f"output.loss={other[0]}", f"eval.metrics={other[1]}")]
        assert set(re.findall(r"`([\w-]+)`", losses)) == set(said[0].split("choose one of ")[1].split(", ")), kind
        assert set(re.findall(r"`([\w-]+)`", metrics)) == set(said[1].split(", but ")[1].split(", ")), kind


def kinds_in_table(page, head):
    """Of each kind that the first cells name the keys in the last one."""
    rows = [re.split(r" *\| *", line)[1:-1] for line in re.split(rf"^\| `{head}` \|.*\n\|-.*\n", prose(page), flags=re.M)[1].split("\n\n")[0].splitlines()]
    return {kind: re.findall(r"`(\w+)`", row[-1]) for row in rows for kind in re.findall(r"`([\w.-]+)`", row[0])}


def test_tables_of_models_optimizers_and_schedules_are_what_the_kinds_declare(millrace):
    help_text = millrace("train", "--help").stdout
    page = prose("docs/recipes.md")
    models = keys_of_kinds(help_text, "model")
    models["model.onnx"] = [key for key in models.pop("onnx") if key != "onnx_file"]
    assert kinds_in_table("docs/recipes.md", "model.kind") == models

    common = re.findall(r"^  train\.optimizer\.(\w+)", re.search(r"^Of each optimizer:\n((?:  .*\n)+)", help_text, re.M)[1], re.M)
    said = re.search(r"^Each optimizer also takes (.*?)\. ", page, re.M)[1]
    assert re.findall(r"`(\w+)`", re.sub(r" \(.*?\)", "", said.split("; `lbfgs`")[0])) == common
    declared = keys_of_kinds(help_text, "train.optimizer")
    assert kinds_in_table("docs/recipes.md", "train.optimizer.kind") == {kind: [key for key in keys if key not in common] for kind, keys in declared.items()}

    declared = keys_of_kinds(help_text, "train.schedule")
    assert all("warmup" in keys for keys in declared.values())
    assert kinds_in_table("docs/recipes.md", "train.schedule.kind") == {kind: [key for key in keys if key != "warmup"] for kind, keys in declared.items()}


def test_code_of_the_guide_is_the_code_that_is_tested():
    test = (ROOT / "tests/nn/guide_test.cpp").read_text()
    # The test prints into a text, and its files lie in a folder of its own.
    tested = re.sub(r"\s+", "", re.sub(r"//.*", "", re.sub(r'(?<![.\w])at\(("[^"]+")\)', r"\1", test))).replace("[&](conststd::string&line)", "[](conststd::string&line)")
    assert len(blocks("docs/cpp.md", "cpp")) >= 5
    for block in blocks("docs/cpp.md", "cpp"):
        block = re.sub(r"//.*", "", block)
        # Between two of them the test may check something.
        for statement in re.split(r"(?<=[;{}])\s*\n", block):
            statement = statement.replace("std::cout", "out")
            assert re.sub(r"\s+", "", statement) in tested or "#include" in statement, statement
    for printed in blocks("docs/cpp.md"):
        assert printed in test


def test_the_operator_in_contributing_is_the_one_that_is_built():
    assert blocks("CONTRIBUTING.md", "cpp") == [(ROOT / "src/ops/softsign.cpp").read_text()]


def test_what_the_pages_name_is_there(millrace):
    usage = subprocess.run([ROOT / "dev"], capture_output=True, text=True).stdout
    verbs = set(re.findall(r"^  (\w+) ", usage, re.M))
    listed = set(re.findall(r"^\| `(\w+)", (ROOT / "README.md").read_text(), re.M))
    assert listed == verbs
    help_text = millrace("--help").stdout
    for page in PAGES:
        for span in spans(page):
            if span.startswith("./dev "):
                assert span.split()[1] in verbs, (page, span)
            if re.match(r"millrace [a-z]", span):
                assert re.search(rf"^ +{span.split()[1]}\b", help_text, re.M), (page, span)
            if re.fullmatch(r"(\.ci|bench|cmake|deps|docs|examples|include|src|tests|tools)/[\w./]*", span):
                assert (ROOT / span.replace("TARGET", "tar")).exists(), (page, span)
        for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", prose(page)):
            assert ((ROOT / page).parent / link).exists(), (page, link)
    shown = {line.split()[1] for line in commands("README.md")}
    assert set(re.findall(r"^  ([a-z]+) {8,}", help_text, re.M)) - {"letters"} <= shown


def rows_of(page, heading):
    """The first cells of the table whose head begins so, without backquotes and quotes."""
    lines = (ROOT / page).read_text().splitlines()
    rows = []
    for line in lines[lines.index(next(line for line in lines if line.startswith(heading))) + 2:]:
        if not line.startswith("| "):
            break
        rows.append(re.findall(r"`\"?([^`\"]+)\"?`", line.split(" | ")[0]))
    return rows


def test_tables_of_kinds_on_the_pages_are_those_of_the_program(millrace):
    """What the help lists comes from the kinds' own declarations."""
    help_text = millrace("train", "--help").stdout
    part = lambda title: re.search(rf"^{re.escape(title)}.*\n((?:  .*\n)+)", help_text, re.M)[1]
    listed = lambda title: set(re.findall(r"^  (\S.*)$", part(title), re.M))
    kinds = lambda key: set(re.findall(rf'^{re.escape(key)} = "(.*?)":', help_text, re.M))
    flat = lambda page, heading: {cell for row in rows_of(page, heading) for cell in row}
    names = lambda usages: {usage.split()[0] for usage in usages}
    augmentations = (ROOT / "docs/data.md").read_text().split("## Augmentations")[1]
    in_table = {usage for line in augmentations.splitlines() if line.startswith("| `")
                for usage in re.findall(r"`([^`]+)`", line.split(" | ")[0])}
    assert in_table == listed("Augmentations")
    assert flat("docs/recipes.md", "| layer |") == listed("Layers")
    assert names(flat("docs/data.md", "| `data.order` |")) == names(listed("Orders"))
    further = (ROOT / "docs/recipes.md").read_text().split("### Further logs")[1].split("\n#")[0]
    assert set(re.findall(r"^- `([^`]+)`", further, re.M)) == listed("Logs")
    baselines = json.loads(millrace("baseline", "--list", "--json").stdout)
    assert flat("docs/baseline.md", "| baseline |") == {each["baseline"] for each in baselines}
    assert flat("docs/predict.md", "| output | in the object") == kinds("output.kind")
    assert flat("docs/predict.md", "| output | results") == kinds("output.kind")
    for metric in names(listed("Metrics")):
        assert f"`{metric}`" in prose("docs/recipes.md"), metric
    for order in names(listed("Orders")):
        assert f'"{order}' in re.search(r"^  data\.order +(.*)$", help_text, re.M)[1], order
    for macro in re.findall(r"MILLRACE_[A-Z_]+(?=\(name\))", (ROOT / "CONTRIBUTING.md").read_text()):
        assert f" {macro} " in (ROOT / "CMakeLists.txt").read_text(), macro
    for macro in re.findall(r"^millrace_kinds\(\w+ \S+ (\w+)", (ROOT / "CMakeLists.txt").read_text(), re.M):
        assert f"`{macro}(name)`" in (ROOT / "CONTRIBUTING.md").read_text(), macro


def test_formats_on_the_page_of_data_are_those_of_the_program(millrace):
    written = set(re.search(r"--format TEXT +what to write, where OUT's ending does not say: (.*)", millrace("data", "convert", "--help").stdout)[1].split(", "))
    page = (ROOT / "docs/data.md").read_text()
    assert set(re.search(r"--format (\w+(?:\|\w+)+)`: all columns", page)[1].split("|")) == written
    tables = "\n".join(table.split("\n\n")[0] for table in page.split("\n| Format | ")[1:])
    named = {{"FFCV": "beton"}.get(name, name.lower()) for name in re.findall(r"^\| (\w+)", tables, re.M)}
    # Which pack is for.
    assert written - named - set(re.findall(r"`--format (\w+)`", tables)) == {"webdataset"}


def test_commands_of_the_page_about_scale_run(at_desk, desk):
    lines = commands("docs/scale.md")
    assert len(lines) == 1
    assert "10 times the data: accuracy" in at_desk(lines[0], "train.epochs=1", *SHORT) and (desk / "curve.svg").exists()


def test_commands_of_the_page_about_several_inputs_run_in_their_order(at_desk, desk):
    lines = commands("docs/several.md")
    assert len(lines) >= 9
    for line in lines:
        less = ["--train", "800", "--test", "100"] if " letters " in line else SHORT if " train " in line else []
        assert at_desk(line, *less), line
    shown = at_desk("millrace eval runs/signs --json")
    assert {"letter.accuracy", "letter.log-loss", "size.mae", "size.r2"} <= json.loads(shown).keys()
    told = json.loads(at_desk("millrace predict runs/signs data/signs/test --json").splitlines()[0])
    assert {"letter", "size"} <= told.keys()


@pytest.mark.parametrize("page, name, least", [("pictures", "photos", 9), ("tables", "customers", 9), ("sounds", "words", 7)])
def test_commands_of_the_pages_of_tasks_run_in_their_order(at_desk, desk, page, name, least):
    (desk / f"{name}.toml").write_text(blocks(f"docs/{page}.md", "toml")[0])
    lines = commands(f"docs/{page}.md")
    assert len(lines) >= least
    for line in lines:
        assert at_desk(line), line
    found = json.loads(at_desk(f"millrace eval runs/{name} --json"))
    assert found["accuracy"] > 0.75
    spoken = [span for span in spans(f"docs/{page}.md") if re.match(r"millrace \w+ \w+[./]", span)]
    for span in spoken:
        if not span.startswith(("millrace train", "millrace lr-find")):
            at_desk(span)
