"""The installed package serves a project that knows nothing of this one but find_package(millrace)."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT


def run(*command, env=None):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def consumer(tmp_path_factory):
    """The program in consumer/, built against the installed package; and the installed binary beside it."""
    folder = tmp_path_factory.mktemp("consumer")
    build, prefix = folder / "build", folder / "prefix"
    run("cmake", "--install", ROOT / "build/release", "--prefix", prefix)
    source = Path(__file__).parent / "consumer"
    run("cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    return build / "consumer", prefix / "bin/millrace"


def test_licences_of_what_is_shipped_and_compiled_in_are_installed(consumer):
    found = consumer[1].parents[1] / "share/doc/millrace/licenses"
    for library in ("onednn_cpu_gomp", "pyarrow"):
        assert any((found / library).iterdir()), library
    assert "Xbyak" in (found / "onednn_cpu_gomp/THIRD-PARTY-PROGRAMS").read_text()
    for package in ("llvm-19-dev", "libfmt-dev", "libcli11-dev", "libtomlplusplus-dev", "nlohmann-json3-dev", "libboost-dev"):
        if Path(f"/usr/share/doc/{package}/copyright").exists():
            assert (found / package / "copyright").stat().st_size > 0, package


def test_consumer_finds_links_and_runs(consumer):
    printed = run(consumer[0], "compute")
    assert printed.startswith("-1 0 2 \n")
    assert "TypeError: add" in printed


def test_consumer_trains_by_a_recipe_and_by_a_loop_of_its_own(consumer, tmp_path):
    program, millrace = consumer
    run(millrace, "letters", tmp_path / "letters", "--train", 600, "--test", 200)
    (tmp_path / "out").mkdir()
    printed = run(program, "letters", tmp_path / "letters", tmp_path / "out")
    assert printed.endswith("letters are learnt\n"), printed
    # The verbs take its run.
    measured = json.loads(run(millrace, "eval", tmp_path / "out/run", "--json"))
    assert f"accuracy {measured['accuracy']:g}\n" in printed
    assert (tmp_path / "out/letters.onnx").stat().st_size > 1000


def test_consumer_adds_one_of_each_kind_and_trains_with_them(consumer, tmp_path):
    printed = run(consumer[0], "extend", tmp_path)
    assert printed.endswith("all of them work\n"), printed
    for kind in ("operator", "pass", "provider", "layer", "augmentation", "format", "metric", "loss"):
        assert f"{kind}: called" in printed, printed


def test_installed_program_reads_parquet_wherever_it_is_moved(tmp_path):
    """Its libraries are its own: those of the build and of pyarrow are not looked at."""
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    run("cmake", "--install", ROOT / "build/release", "--prefix", tmp_path / "prefix")
    (tmp_path / "prefix").rename(tmp_path / "moved")
    parquet.write_table(pyarrow.table({"a": [1, 2]}), tmp_path / "x.parquet")
    # Which libraries are loaded, and from where, the loader says itself.
    log = tmp_path / "loaded"
    env = {**os.environ, "LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(log)}
    printed = run(tmp_path / "moved/bin/millrace", "data", "head", tmp_path / "x.parquet", "--json", env=env)
    assert json.loads(printed)["head"] == [{"a": 1}, {"a": 2}]
    loaded = "".join(path.read_text() for path in tmp_path.glob("loaded.*"))
    inits = [line.split("calling init: ")[1] for line in loaded.splitlines() if "calling init: " in line]
    for name in ("libmillrace_arrow.so", "libarrow.so.2600", "libparquet.so.2600"):
        assert [os.path.realpath(path) for path in inits if name in path] == [os.path.realpath(tmp_path / "moved/lib/millrace" / name)], inits
    # And not before they are needed.
    for path in tmp_path.glob("loaded.*"):
        path.unlink()
    run(tmp_path / "moved/bin/millrace", "--help", env=env)
    loaded = "".join(path.read_text() for path in tmp_path.glob("loaded.*"))
    assert "libdnnl" in loaded and not [name for name in ("libarrow", "libxgboost", "libLLVM", "libz3") if name in loaded]


def test_installed_library_keeps_its_llvm_to_itself(consumer):
    """A program may have another one."""
    library = next((consumer[1].parents[1]).glob("lib*/**/libmillrace.so"))
    shown = run("nm", "-DC", "--defined-only", library)
    assert "millrace::Session::run" in shown
    assert not [line for line in shown.splitlines() if "llvm::" in line]
