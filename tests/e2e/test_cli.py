"""The command line itself: help, errors, exit codes; letters and pack."""
import subprocess


def test_help_teaches_and_lists_every_verb(millrace):
    text = millrace("--help").stdout
    assert "millrace train examples/letters.toml" in text
    for verb in ("letters", "pack"):
        assert verb in text
        assert "millrace " + verb in millrace(verb, "--help").stdout


def test_version(millrace):
    assert millrace("--version").stdout.startswith("millrace ")


def test_wrong_usage_exits_with_2_and_one_clear_message(millrace):
    assert "did you mean 'letters'" in millrace("leters", code=2).stderr
    assert "SOURCE" in millrace("pack", code=2).stderr
    assert "--bogus" in millrace("letters", "x", "--bogus", code=2).stderr
    assert "did you mean '--seeds'?" in millrace("train", "x.toml", "--sedes", "3", code=2).stderr
    assert "--seeds is from 2 to 1000, not 0" in millrace("train", "x.toml", "--seeds", "0", code=1).stderr
    assert "did you mean '--json'?" in millrace("data", "head", "x", "--jsno", code=2).stderr
    assert "did you mean" not in millrace("data", "head", "x", "--bogus", code=2).stderr


def test_errors_exit_with_1_and_no_colour_off_a_terminal(millrace, tmp_path):
    result = millrace("pack", tmp_path / "nothing", tmp_path / "out", code=1)
    assert result.stderr.startswith("error: ")
    assert "nothing" in result.stderr
    assert "\033" not in result.stderr


def test_output_to_a_full_disk_is_an_error(binary, tmp_path):
    for words in (["letters", tmp_path / "x", "--train", "20", "--test", "10"], ["--help"], ["train", "--help"], ["--version"]):
        with open("/dev/full", "w") as full:
            result = subprocess.run([binary, *words], stdout=full, stderr=subprocess.PIPE, text=True)
        assert result.returncode == 1 and "could not be written" in result.stderr, words
        assert "defect" not in result.stderr


def test_links_to_themselves_and_names_that_are_too_long_are_named(millrace, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    assert millrace("predict", "nope", "x.csv", cwd=tmp_path, code=1).stderr == "error: there is no run folder nope\n"
    for words in (["diff", "loop", "loop"], ["train", "loop.toml", "--out", "loop"], ["predict", "loop", "x.csv"]):
        assert "filesystem" not in millrace(*words, cwd=tmp_path, code=1).stderr
    name = "n" * 300
    assert millrace("train", "r.toml", "--out", name, cwd=tmp_path, code=1).stderr.startswith("error: ")
    assert "filesystem" not in millrace("predict", name, "x.csv", cwd=tmp_path, code=1).stderr


def test_a_missing_data_folder_says_what_to_set(millrace, tmp_path):
    result = millrace("train", "examples/mnist.toml", "--out", tmp_path / "run", code=1,
                      env={"MILLRACE_DATA": str(tmp_path / "nowhere")})
    assert "set MILLRACE_DATA" in result.stderr and "nowhere" in result.stderr


def test_letters_are_the_same_bytes_every_time_and_pack(millrace, tmp_path):
    for name in ("a", "b"):
        millrace("letters", tmp_path / name, "--train", 60, "--test", 20, "--threads", 1 if name == "a" else 3)
    assert subprocess.run(["diff", "-r", tmp_path / "a", tmp_path / "b"]).returncode == 0
    text = millrace("pack", tmp_path / "a", tmp_path / "packed").stdout
    assert "60 pictures of 10 classes" in text and "20 pictures" in text
    assert (tmp_path / "packed/train-000000.tar").exists() and (tmp_path / "packed/test-000000.tar").exists()
