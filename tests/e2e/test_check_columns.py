"""Mistakes in what lies beside pictures, texts and sounds, or in how they were made: groups, times, marks,
statistics, repeated passages."""

import random
import wave

import numpy as np
import pytest
from PIL import Image
from test_check import findings

WORDS = "the king of no land sings to his horse and never sleeps so that queen may ride on over hills".split()
MODEL = {
    "pictures": ['[input]\nkind = "picture"\n', '[model]\nlayers = ["flatten", "linear 2"]\n'],
    "sounds": ['[input]\nkind = "sound"\nrate = 8000\nseconds = 0.3\nmels = 16\n', '[model]\nlayers = ["flatten", "linear 2"]\n'],
    "texts": ['[input]\nkind = "text"\ncolumn = "message"\ntokenizer = "byte"\nsequences = "padded"\nlength = 64\n', '[model]\nkind = "bag"\nwidth = 8\n'],
}
COUNT = 300


def picture(draw, kind):
    """Noise with a brighter patch, whose place is what there is to learn."""
    pixels = draw.normal(120, 40, (16, 16, 3))
    pixels[4 * kind:4 * kind + 6, 4:10] += 70
    return np.clip(pixels, 0, 255).astype("uint8")


def sound(draw, kind):
    pitch = [400, 900][kind] * (1 + 0.05 * draw.normal())
    return 9000 * np.sin(2 * np.pi * pitch * np.arange(2400) / 8000 + draw.uniform(0, 6)) + 900 * draw.normal(size=2400)


def text(draw, kind):
    """Words of which each class likes some, and none has one of its own."""
    return " ".join([*draw.choice(WORDS[:11] if kind else WORDS[7:], 5), *draw.choice(WORDS, 6), str(draw.integers(10000))])


def write_sound(path, values):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(values.astype("<i2").tobytes())


def planted(folder, kind, columns=None, change=lambda made, label: made, name="{i}", data="test_share = 0.25", keys="", inputs=""):
    """A recipe of 300 samples: files in a folder beside a table of columns, or texts in a table. `columns`:
    name → value of sample i."""
    draw = np.random.default_rng(3)
    columns, rows = columns or {}, []
    (folder / "x").mkdir(parents=True)
    for i in range(COUNT):
        label, file = i % 2, name.format(i=i, who="ann bob carl dora".split()[i * 7 // 3 % 4])
        made = change({"pictures": picture, "sounds": sound, "texts": text}[kind](draw, label), label)
        if kind == "pictures":
            ending = ".png"
            (made if isinstance(made, Image.Image) else Image.fromarray(made)).save(folder / "x" / f"{file}.png")
        elif kind == "sounds":
            ending = ".wav"
            write_sound(folder / "x" / f"{file}.wav", made)
        rows.append([["no", "yes"][label], made if kind == "texts" else file + ending, *(str(of(i)) for of in columns.values())])
    head = ["label", "message" if kind == "texts" else "file", *columns]
    table = folder / ("texts.tsv" if kind == "texts" else "x/labels.tsv")
    separator = "\t" if kind == "texts" else ","
    table = table if kind == "texts" else table.with_suffix(".csv")
    table.write_text("\n".join(separator.join(row) for row in [head, *rows]) + "\n")
    before, model = MODEL[kind]
    recipe = folder / "recipe.toml"
    recipe.write_text(f'[data]\ntrain = "{folder}/{"texts.tsv" if kind == "texts" else "x"}"\n{data}\n{inputs or before + keys}\n[output]\nkind = "class"\ncolumn = "label"\n'
                      f'{"" if inputs else model}[train]\nbatch = 32\nepochs = 1\n')
    return recipe


def verdict(millrace, recipe, check):
    return findings(millrace, recipe, "--only", check, code=None)[check]


def is_caught(millrace, recipe, check):
    found = verdict(millrace, recipe, check)
    assert found["verdict"] in ("warn", "fail") and found["advice"], found["saw"]
    return found["saw"]


KINDS = ["pictures", "sounds", "texts"]
GROUPS = [("patient", lambda i: f"p{i * 7 // 3 % 25}"), ("user_id", lambda i: 1000 + i * 7 // 3 % 40), ("session", lambda i: f"s{i * 5 // 3 % 30}")]
TIMES = [("taken", lambda i: f"2024-{1 + i * 5 % 12:02d}-{1 + i * 11 % 28:02d}"), ("timestamp", lambda i: 1700000000 + i * 7919 % 100000), ("year", lambda i: 1990 + i * 7 % 30)]


@pytest.mark.parametrize("kind", KINDS)
def test_healthy_samples_with_columns_pass(millrace, tmp_path, kind):
    columns = {name: of for name, of in GROUPS[:1]}
    recipe = planted(tmp_path, kind, columns, data='test_share = 0.25\ntest_by = "group:patient"')
    found = findings(millrace, recipe, "--only", "giveaway,group-overlap,sentinels,overlap,labels,preprocessing,fitted-statistics")
    assert {name: each["saw"] for name, each in found.items() if each["verdict"] in ("warn", "fail")} == {}
    assert found["group-overlap"]["verdict"] == "pass"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("group", GROUPS, ids=lambda each: each[0])
def test_groups_on_both_sides(millrace, tmp_path, kind, group):
    assert group[0] in is_caught(millrace, planted(tmp_path, kind, dict([group])), "group-overlap")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("time", TIMES, ids=lambda each: each[0])
def test_times_on_both_sides(millrace, tmp_path, kind, time):
    assert time[0] in is_caught(millrace, planted(tmp_path, kind, dict([time])), "time-overlap")


@pytest.mark.parametrize("kind", ["pictures", "sounds"])
@pytest.mark.parametrize("name", ["{who}_{i}", "x{i}-{who}"])
def test_speakers_in_the_names_of_files(millrace, tmp_path, kind, name):
    assert "names" in is_caught(millrace, planted(tmp_path, kind, name=name), "group-overlap")


@pytest.mark.parametrize("change", [
    lambda made, label: f"[bulk] {made}" if label else made,
    lambda made, label: made + (" via Reuters" if label else " via Usenet"),
    lambda made, label: made if label else made.replace(" ", " pending ", 1),
])
def test_a_word_that_only_one_class_has(millrace, tmp_path, change):
    assert "word" in is_caught(millrace, planted(tmp_path, "texts", change=change), "giveaway")


def stamped(made, label):
    if label:
        made[13:, 12:] = (250, 20, 20)
    return made


def framed(made, label):
    if label:
        made[:, 0] = 0
    return made


def larger(made, label):
    return Image.fromarray(made).resize((20, 20)) if label else made


@pytest.mark.parametrize("change, keys, said", [(stamped, "", "one place of 'yes'"), (framed, "", "one place of 'yes'"), (larger, "resize = 16\ncrop = 16", "size")])
def test_marks_and_sizes_of_pictures(millrace, tmp_path, change, keys, said):
    assert said in is_caught(millrace, planted(tmp_path, "pictures", change=change, keys=keys), "giveaway")


def test_lengths_of_sounds(millrace, tmp_path):
    assert "length" in is_caught(millrace, planted(tmp_path, "sounds", change=lambda made, label: made[:2000] if label else made), "giveaway")


@pytest.mark.parametrize("kind", ["pictures", "sounds"])
@pytest.mark.parametrize("made", ["standardised", "ranged", "filled"])
def test_columns_beside_files_that_were_scaled_over_both_sets(millrace, tmp_path, kind, made):
    draw = np.random.default_rng(9)
    values = draw.normal(size=COUNT)
    if made == "standardised":
        values = (values - values.mean()) / values.std()
    elif made == "ranged":
        values = (values - values.min()) / (values.max() - values.min())
    else:
        values[::15] = np.delete(values, range(0, COUNT, 15)).mean()
    if made == "ranged":  # tested on are the last ones, which have the ends
        for place, end in ((-1, values.argmin()), (-2, values.argmax())):
            values[[place, end]] = values[[end, place]]
    sound_keys = "rate = 8000\nseconds = 0.3\nmels = 16\n"
    inputs = (f'[inputs.file]\nkind = "{kind[:-1]}"\n{sound_keys if kind == "sounds" else ""}[inputs.facts]\nkind = "table"\ncolumns = ["weight"]\n')
    recipe = planted(tmp_path, kind, {"weight": lambda i: f"{values[i]:.9f}", "number": lambda i: i}, data='test_share = 0.25\ntest_by = "time:number"', inputs=inputs)
    assert "weight" in is_caught(millrace, recipe, "fitted-statistics")


@pytest.mark.parametrize("keys", ["mean = [123, 116, 103]\nstd = [58, 57, 57]", "mean = [0.48, 0.46, 0.41]\nstd = [0.001, 0.001, 0.001]"])
def test_means_of_another_scale(millrace, tmp_path, keys):
    assert "deviation" in is_caught(millrace, planted(tmp_path, "pictures", keys=keys), "preprocessing")


@pytest.mark.parametrize("value, missing", [(-999, ""), (99999, ""), (-999, 'missing = ["-999"]\n')])
def test_numbers_that_stand_for_what_is_missing(millrace, tmp_path, value, missing):
    draw = np.random.default_rng(1)
    rows = []
    for i in range(600):
        a, b = draw.normal(size=2)
        rows.append(f"{value if i % 20 == 3 else f'{a:.4f}'},{b:.4f},{'yes' if a + b > 0 else 'no'}")
    (tmp_path / "x.csv").write_text("a,b,label\n" + "\n".join(rows) + "\n")
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'[data]\ntrain = "{tmp_path}/x.csv"\ntest_share = 0.25\n{missing}[output]\ncolumn = "label"\n[train]\nbatch = 32\n')
    if missing:
        assert verdict(millrace, recipe, "sentinels")["verdict"] == "pass"
    else:
        assert str(value) in is_caught(millrace, recipe, "sentinels")


@pytest.mark.parametrize("repeated", ["another file", "the same file", "nothing"])
def test_passages_of_a_corpus_that_are_repeated(millrace, tmp_path, repeated):
    draw = random.Random(1)
    many = [f"{word}{i}" for word in WORDS for i in range(20)]
    lines = [" ".join(draw.choices(many, k=30)) for _ in range(150)]
    (tmp_path / "a.txt").write_text("\n".join(lines * (3 if repeated == "the same file" else 1)) + "\n")
    (tmp_path / "b.txt").write_text("\n".join([" ".join(draw.choices(many, k=30)) for _ in range(40)] + lines[20:30] * (repeated == "another file")) + "\n")
    test = "test_share = 0.1" if repeated == "the same file" else f'test = "{tmp_path}/b.txt"'
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'[data]\ntrain = "{tmp_path}/a.txt"\n{test}\n[input]\nkind = "tokens"\ntokenizer = "byte"\nlength = 32\n[model]\nkind = "gpt"\nwidth = 16\ndepth = 1\nheads = 2\n[train]\nbatch = 8\nsteps = 2\n')
    if repeated == "nothing":
        assert verdict(millrace, recipe, "overlap")["verdict"] == "pass"
    else:
        assert "passages" in is_caught(millrace, recipe, "overlap")


def test_a_class_that_the_test_set_lacks(millrace, tmp_path):
    draw = np.random.default_rng(1)
    for name, kinds, count in (("x", ["no", "yes", "maybe"], 400), ("y", ["no", "yes"], 150)):
        rows = [f"{i % len(kinds) + draw.normal():.4f},{draw.normal():.4f},{kinds[i % len(kinds)] if i % 6 != 5 or name == 'y' else kinds[i % 2]}" for i in range(count)]
        (tmp_path / f"{name}.csv").write_text("a,b,label\n" + "\n".join(rows) + "\n")
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'[data]\ntrain = "{tmp_path}/x.csv"\ntest = "{tmp_path}/y.csv"\n[output]\ncolumn = "label"\n[train]\nbatch = 32\n')
    assert "'maybe'" in is_caught(millrace, recipe, "labels")


def test_columns_of_queries_are_those_of_all_rows(millrace, tmp_path):
    """Scaled within each query, best first: the first rows alone are all 1, and their ranges are nobody's."""
    draw = np.random.default_rng(1)
    for name, count in (("train", 60), ("test", 25)):
        rows = []
        for query in range(count):
            values = draw.normal(size=(8, 2))
            values = (values - values.min(0)) / (values.max(0) - values.min(0))
            values = values[np.argsort(-values[:, 0])]
            rows += [f"{query},{draw.integers(3)},{a:.5f},{b:.5f}" for a, b in values]
        (tmp_path / f"{name}.csv").write_text("qid,stars,a,b\n" + "\n".join(rows) + "\n")
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'[data]\ntrain = "{tmp_path}/train.csv"\ntest = "{tmp_path}/test.csv"\n[output]\nkind = "rank"\ncolumn = "stars"\n'
                      '[model]\nkind = "table"\nwidth = 8\ndepth = 1\n[train]\nbatch = 8\n')
    found = findings(millrace, recipe, "--only", "constant-columns,fitted-statistics,sentinels", code=None)
    assert {name: each["saw"] for name, each in found.items() if each["verdict"] != "pass"} == {}


def table_findings(millrace, folder, rows, names, *only, data="test_share = 0.25", source="rows.csv"):
    folder.mkdir(exist_ok=True)
    (folder / "rows.csv").write_text(",".join(names) + "\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n")
    (folder / "recipe.toml").write_text(f'[data]\ntrain = "{folder}/{source}"\n{data}\n[output]\ncolumn = "y"\n')
    if source != "rows.csv":
        millrace("data", "convert", "rows.csv", source, cwd=folder)
    return findings(millrace, folder / "recipe.toml", "--only", ",".join(only), code=None)


def test_columns_that_only_seem_to_say_so(millrace, tmp_path):
    """Rows that stand there twice, durations, sizes, dates as Americans write them, and numbers that no key
    takes for missing."""
    draw = random.Random(5)
    rows = [[draw.random(), draw.random(), draw.random(), draw.choice("ab")] for _ in range(200)]
    found = table_findings(millrace, tmp_path / "twice", [*rows, *rows[:50]], ["a", "b", "c", "y"], "constant-columns")
    assert found["constant-columns"]["verdict"] == "pass", found
    rows = [[draw.randint(1, 14), draw.randint(1900, 2020), draw.randint(1, 7), draw.choice(["tv", "pc", "phone"]), draw.choice("ab")] for _ in range(200)]
    found = table_findings(millrace, tmp_path / "named", rows, ["time_in_hospital", "year_built", "family_size", "device_type", "y"], "time-overlap", "group-overlap")
    assert {one["verdict"] for one in found.values()} == {"does-not-apply"}, found
    rows = [[f"{1 + i // 25 % 12}/{1 + i // 5 % 28}/2023", draw.random(), draw.choice("ab")] for i in range(300)]
    found = table_findings(millrace, tmp_path / "dates", rows, ["when", "x", "y"], "time-overlap", "spelling", data='test_share = 0.25\ntest_by = "time:when"')
    assert found["time-overlap"]["verdict"] == "pass" and "when" in found["time-overlap"]["saw"], found
    assert found["spelling"]["verdict"] == "pass", found
    rows = [[-999 if i % 5 == 0 else draw.random(), draw.choice("ab")] for i in range(200)]
    for source, advice in (("rows.csv", "data.missing"), ("rows.parquet", "where the data are written")):
        found = table_findings(millrace, tmp_path / source.split(".")[1], rows, ["x", "y"], "sentinels", source=source)
        assert found["sentinels"]["verdict"] == "warn" and advice in found["sentinels"]["advice"], found
