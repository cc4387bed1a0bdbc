"""Folders, archives and lists of files as people have them, for prediction and as data sets."""

import io
import json
import os
import shutil
import subprocess
import tarfile
import wave

import numpy as np
import pytest
from test_pictures_as_people_have_them import class_folders, logits, run, smooth, write_recipe  # noqa: F401


@pytest.fixture
def heap(tmp_path):
    """A folder as people have it: folders in folders, wrong and missing names, and what other programs left
    there."""
    folder = tmp_path / "heap"
    (folder / "trip" / "day 2").mkdir(parents=True)
    smooth(1).save(folder / "b.png")
    smooth(2).save(folder / "a.JPG", "PNG")  # a PNG called .JPG
    smooth(3).save(folder / "trip" / "0a1b2c", "JPEG")  # no extension
    smooth(4).save(folder / "trip" / "day 2" / "Ünïcödé 写真.jpeg")
    smooth(5).save(folder / "z.bin", "WEBP")
    for name in (".DS_Store", "Thumbs.db", "notes.md", "trip/list.csv"):
        (folder / name).write_bytes(b"\0\1 no picture")
    (folder / "__MACOSX" / "trip").mkdir(parents=True)
    (folder / "__MACOSX" / "trip" / "b.png").write_bytes(b"\0\5\x16\7\0\2\0\0Mac OS X")
    (folder / "._b.png").write_bytes(b"\0\5\x16\7\0\2\0\0Mac OS X")
    return folder


IN_ORDER = ["a.JPG", "b.png", "trip/0a1b2c", "trip/day 2/Ünïcödé 写真.jpeg", "z.bin"]


def names(result):
    return [json.loads(line)["input"] for line in result.stdout.splitlines()]


def test_predict_takes_folders(millrace, run, heap):
    result = millrace("predict", run, heap, "--json")
    assert names(result) == [str(heap / name) for name in IN_ORDER]
    wanted = logits(millrace("predict", run, *[heap / name for name in IN_ORDER], "--json"))
    assert logits(result) == wanted and len(wanted) == 5


def test_predict_takes_patterns_in_quotes(millrace, run, heap):
    assert names(millrace("predict", run, f"{heap}/*.[jJpP]*", "--json")) == [str(heap / "a.JPG"), str(heap / "b.png")]
    assert names(millrace("predict", run, f"{heap}/trip/0*", f"{heap}/{{z,b}}.*", "--json")) == [
        str(heap / name) for name in ("trip/0a1b2c", "z.bin", "b.png")
    ]
    both = millrace("predict", run, f"{heap}/t*", f"{heap}/none*.jpg", "--json", code=1)
    assert names(both) == [str(heap / name) for name in IN_ORDER if "trip" in name]
    assert "matches no file" in both.stderr and "1 of 3 could not be predicted" in both.stderr


def test_predict_takes_lists_of_paths(millrace, run, heap, binary):
    listed = [heap / name for name in reversed(IN_ORDER)]
    (heap.parent / "list").write_text("\n".join(map(str, listed)) + "\n\n")
    assert names(millrace("predict", run, heap.parent / "list", "--json")) == list(map(str, listed))
    (heap / "beside.lst").write_bytes(b"\xef\xbb\xbfmissing.jpg\r\nb.png\r\ntrip\r\n")
    beside = millrace("predict", run, heap / "beside.lst", "--json", code=1)
    assert names(beside) == [str(heap / name) for name in ("b.png", "trip/0a1b2c", "trip/day 2/Ünïcödé 写真.jpeg")]
    assert "missing.jpg" in beside.stderr and "1 of 4 could not be predicted" in beside.stderr
    found = subprocess.run(["find", heap / "trip", "-name", "*.jpeg"], capture_output=True, check=True).stdout
    piped = subprocess.run([binary, "predict", run, "-", "--json"], input=found, capture_output=True, check=True)
    assert json.loads(piped.stdout)["input"] == str(heap / IN_ORDER[3])
    picture = subprocess.run(
        [binary, "predict", run, "-", "--json"], input=(heap / "b.png").read_bytes(), capture_output=True, check=True
    )
    wanted = logits(millrace("predict", run, heap / "b.png", "--json"))
    assert json.loads(picture.stdout)["logits"] == wanted[str(heap / "b.png")]


def predict_list(binary, run, text, folder):
    return subprocess.run([binary, "predict", run, "-", "--json"], input=text, capture_output=True, cwd=folder)


def test_lists_divided_by_zeros_and_of_missing_files(millrace, run, heap, binary):
    found = subprocess.run(["find", heap, "-name", "*.jp*g", "-print0"], capture_output=True, check=True).stdout
    assert found.endswith(b"\0") and b"\n" not in found
    assert names(predict_list(binary, run, found, heap)) == [str(heap / IN_ORDER[3])]
    result = predict_list(binary, run, b"missing.jpg\n", heap)
    assert result.returncode == 1 and result.stdout == b""
    assert "error: missing.jpg: no such file" in result.stderr.decode()
    (heap / "gone.txt").write_text("gone/1.png\ngone/2.png\n")
    error = millrace("predict", run, heap / "gone.txt", code=1).stderr
    assert "gone/1.png" in error and "gone/2.png" in error and len(error.splitlines()) == 2


def test_binary_files_are_no_lists(millrace, run, heap, binary):
    # PBM is not read, and some of its lines begin with 0 as strings end.
    bits = b"P4\n40 24\n" + b"\0\n\xff\n\0.\n" * 20
    (heap / "bits.pbm").write_bytes(bits)
    for content in [bits, b"\1\n" + bytes(heap) + b"/b.png\n", b"b.png\0no such thing\0"]:
        (heap / "bits.pbm").write_bytes(content)
        result = subprocess.run([binary, "predict", run, heap / "bits.pbm"], capture_output=True)
        errors = result.stderr.decode()
        assert result.returncode == 1 and result.stdout == b"" and errors.count("error:") == 1 and "bits.pbm" in errors
    # What a name says to a terminal is not passed on.
    (heap / "odd\x1b[2J.png").write_bytes(b"no picture")
    for argument in [heap / "odd\x1b[2J.png", heap]:
        error = millrace("predict", run, argument, code=1).stderr
        assert "\x1b" not in error and "odd\\x1b[2J.png" in error


def test_what_cannot_be_read_is_named_and_counted_and_loses_nothing_else(millrace, run, heap):
    whole = io.BytesIO()
    smooth(6, 200, 200).save(whole, "JPEG", quality=95)
    bad = {
        "cut.jpg": whole.getvalue()[: len(whole.getvalue()) * 2 // 3],
        "empty.png": b"",
        "gone.jpg": b"\n<!DOCTYPE html><title>404</title>",
        "phone.HEIC": b"\0\0\0\x24ftypheic\0\0\0\0mif1heic" + bytes(40),
        "bomb.png": b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\1\0\0\0\1\0\0\x08\x02\0\0\0" + bytes(40),
        "drawing.jpg": b'<?xml version="1.0"?><svg/>',
    }
    for name, content in bad.items():
        (heap / name).write_bytes(content)
    result = millrace("predict", run, heap, "--json", code=1)
    assert names(result) == [str(heap / name) for name in IN_ORDER]
    assert "6 of 11 could not be predicted" in result.stderr
    errors = {line.split(": ")[1].split("/")[-1]: line for line in result.stderr.splitlines() if line.startswith("error: ")}
    assert sorted(errors) == sorted(bad)
    assert "Premature end" in errors["cut.jpg"] or "truncated" in errors["cut.jpg"]
    assert "empty" in errors["empty.png"] and "web page" in errors["gone.jpg"] and "XML" in errors["drawing.jpg"]
    assert "HEIC" in errors["phone.HEIC"] and "heif-convert" in errors["phone.HEIC"]
    # As a list of arguments, too.
    files = [heap / name for name in sorted([*IN_ORDER, *bad])]
    again = millrace("predict", run, *files, heap / "missing.jpg", "--json", code=1)
    assert sorted(names(again)) == sorted(names(result)) and "7 of 12" in again.stderr


def write_sound(path, pitch):
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", None))
        file.writeframes((9000 * np.sin(np.arange(2400) * pitch / 8000 * 6.283)).astype("<i2").tobytes())


def test_sounds_go_by_content(millrace, tmp_path):
    for i in range(8):
        label = ("high", "low")[i % 2]
        write_sound(tmp_path / "sounds" / label / ("1.mp3", "2", "3.wav", "4.WAV")[i // 2], 900 - 700 * (i % 2) + i)
    (tmp_path / "r.toml").write_text(
        f'[data]\ntrain = "{tmp_path / "sounds"}"\n[input]\nrate = 8000\nseconds = 0.3\nmels = 8\n[model]\n'
        'layers = ["conv 4 3 padding=1", "relu", "global-avg-pool", "linear 2"]\n[train]\nsteps = 2\nbatch = 8\n'
        'optimizer = { kind = "adamw", lr = 1e-2 }\n'
    )
    millrace("train", tmp_path / "r.toml", "--out", tmp_path / "run")
    (tmp_path / "sounds" / "low" / "5.mp3").write_bytes(b"ID3\4 no sound here")
    result = millrace("predict", tmp_path / "run", tmp_path / "sounds", "--json", code=1)
    assert len(result.stdout.splitlines()) == 8 and "1 of 9" in result.stderr and "5.mp3" in result.stderr
    files = names(result)
    assert files == sorted(files)
    assert names(millrace("predict", tmp_path / "run", *files, "--json")) == files


def test_untidy_folders_are_data_sets(millrace, heap, tmp_path):
    folder, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder.mkdir()
    for name in IN_ORDER:
        shutil.copy(heap / name, elsewhere)
    shutil.copytree(elsewhere, folder / "dog")
    (folder / "cat").symlink_to(elsewhere)
    (folder / "dog" / "nowhere.jpg").symlink_to(tmp_path / "nowhere.jpg")
    for debris in ("__MACOSX/cat/._b.png", "Thumbs.db", "cat/Thumbs.db", "dog/._b.png", "@eaDir/b.jpg", "dog/IMG_1.NEF"):
        (folder / debris).parent.mkdir(parents=True, exist_ok=True)
        (folder / debris).write_bytes(b"MM\0*no picture")
    stat = json.loads(millrace("data", "stat", folder, "--json").stdout)["sources"][0]
    assert stat["classes"] == {"cat": 5, "dog": 5} and stat["bad"] == []
    assert "10 pictures" in millrace("train", write_recipe(tmp_path / "r.toml", folder), "--out", tmp_path / "run").stdout


def test_training_in_the_folder_of_data_makes_no_classes_of_its_runs(millrace, tmp_path):
    folder = class_folders(tmp_path / "data")
    (folder / "recipe.toml").write_text(millrace("init", ".", cwd=folder).stdout)  # no run for that
    recipe = write_recipe(folder / "r.toml", ".")
    first = millrace("train", recipe, cwd=folder).stdout
    assert (folder / "runs/r-1/checkpoints").is_dir()
    (folder / "runs" / "old").mkdir()  # a folder of runs, moved there
    shutil.copytree(folder / "runs/r-1", folder / "runs/old/r-1")
    shutil.copytree(folder / "runs/r-1", folder / "cat/mine")
    second = millrace("train", recipe, cwd=folder).stdout
    assert "8 pictures" in first and "8 pictures" in second
    millrace("train", folder / "runs/r-1", "--resume", "train.steps=3", cwd=folder)
    stat = json.loads(millrace("data", "stat", folder, "--json").stdout)["sources"][0]
    assert stat["classes"] == {"cat": 4, "dog": 4} and stat["bad"] == []
    # Pictures that lie beside a run's own files count; these do not.
    (folder / "cat/mine/notes.md").write_text("nice")
    for run in (folder, folder / "cat"):
        shutil.copytree(folder / "runs/r-1", run, dirs_exist_ok=True)
    stat = json.loads(millrace("data", "stat", folder, "--json").stdout)["sources"][0]
    assert stat["classes"] == {"cat": 4, "dog": 4} and stat["bad"] == []
    assert "8 pictures" in millrace("train", recipe, cwd=folder).stdout
    shutil.copy(next((folder / "dog").glob("*.*")), folder / "cat/mine")
    stat = json.loads(millrace("data", "stat", folder, "--json").stdout)["sources"][0]
    assert stat["classes"] == {"cat": 4, "dog": 4, "mine": 1} and stat["bad"] == []
    shutil.rmtree(folder / "cat/mine")
    # A folder that is empty, or has something else, is a class still.
    (folder / "runs/other").mkdir()
    assert "class other: no pictures" in millrace("train", recipe, cwd=folder, code=1).stderr


def test_classes_of_any_bytes_stay_different(millrace, tmp_path):
    """Names of folders in Latin-1, as old archives give them."""
    folder, count = tmp_path / "latin", {b"caf\xe8": 4, b"caf\xe9": 6, b"dog": 5}
    for c, (name, pictures) in enumerate(count.items()):
        (tmp_path / "one").mkdir()
        for i in range(pictures):
            smooth(i + 100 * c).save(tmp_path / "one" / f"{i}.png")
        folder.mkdir(exist_ok=True)
        (tmp_path / "one").rename(os.fsdecode(bytes(folder) + b"/" + name))
    stored = {"caf\\xe8": 4, "caf\\xe9": 6, "dog": 5}
    assert json.loads(millrace("data", "stat", folder, "--json").stdout)["sources"][0]["classes"] == stored
    assert all(f"  {name} " in millrace("data", "stat", folder).stdout for name in stored)
    millrace("pack", folder, tmp_path / "packed", "--name", "train")
    assert json.loads((tmp_path / "packed/train.json").read_text())["classes"] == list(stored)
    packed = tmp_path / "packed/train-000000.tar"
    assert json.loads(millrace("data", "stat", packed, "--json").stdout)["sources"][0]["classes"] == stored
    # A run of the one knows the classes of the other.
    recipe = write_recipe(tmp_path / "r.toml", folder)
    recipe.write_text(recipe.read_text().replace("linear 2", "linear 3"))
    millrace("train", recipe, "--out", tmp_path / "run")
    results = [json.loads(millrace("eval", tmp_path / "run", source, "--json").stdout) for source in (folder, packed)]
    assert results[0]["accuracy"] == results[1]["accuracy"] and results[0]["targets"] == 15
    told = millrace("predict", tmp_path / "run", packed, "--json").stdout
    assert {json.loads(line)["class"] for line in told.splitlines()} <= set(stored)
    # Where texts must be UTF-8 nothing is written that cannot be read.
    error = millrace("data", "convert", folder, tmp_path / "mds", "--format", "mds", code=1).stderr
    assert "is no UTF-8, which texts of MDS must be" in error and not (tmp_path / "mds").exists()


def test_tars_that_macos_made_are_data_sets(millrace, tmp_path):
    for label in ("cat", "dog"):
        (tmp_path / "data" / label).mkdir(parents=True)
        (tmp_path / "data" / "__MACOSX" / label).mkdir(parents=True)
        (tmp_path / "data" / label / "._1.png").write_bytes(b"\0\5\x16\7\0\2\0\0Mac OS X")
        (tmp_path / "data" / "__MACOSX" / label / "._1.png").write_bytes(b"\0\5\x16\7\0\2\0\0Mac OS X")
        smooth(5 + len(label)).save(tmp_path / "data" / label / "1.png")
    with tarfile.open(tmp_path / "data.tar", "w") as tar:
        tar.add(tmp_path / "data", ".")
    recipe = write_recipe(tmp_path / "r.toml", tmp_path / "data.tar", batch=2)
    assert "2 pictures" in millrace("train", recipe, "--out", tmp_path / "run").stdout


def pictures_with_table(folder, count, table):
    folder.mkdir()
    for i in range(count):
        smooth(i).save(folder / f"{i:03}.png")
    (folder / "labels.csv").write_text(table)
    return folder


def test_tables_of_few_pictures_have_names_and_those_of_more_files_are_used(millrace, tmp_path):
    head = lambda folder, *more: json.loads(millrace("data", "head", folder, "--json", *more).stdout)["head"]  # noqa: E731
    one = pictures_with_table(tmp_path / "one", 1, "file,k,note\n000.png,u,good good\n")
    for more in ([], ["--header", "yes"]):
        (row,) = head(one, *more)
        assert (row["k"], row["note"]) == ("u", "good good")
    rows = "".join(f"{i:03}.png,{'uv'[i % 2]},\n" for i in range(40))
    some = pictures_with_table(tmp_path / "some", 6, "file,k,note\n" + rows)
    assert [row["k"] for row in head(some, "-n", 6)] == list("uvuvuv")
    assert "34 of its rows name no file" in millrace("data", "head", some).stderr
    # Numbers of rows are no names of files.
    many = pictures_with_table(tmp_path / "many", 6, "n,k\n" + "".join(f"{i},u\n" for i in range(40)))
    for i in range(6):
        (many / f"{i:03}.png").rename(many / f"{i}.png")
    assert "k" not in head(many)[0]
