"""The installed package serves a project that knows nothing of this one but find_package(millrace)."""

import subprocess
from pathlib import Path

from conftest import ROOT


def run(*command):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_consumer_finds_links_and_runs(tmp_path):
    build, prefix = tmp_path / "build", tmp_path / "prefix"
    run("cmake", "--install", ROOT / "build/release", "--prefix", prefix)
    source = Path(__file__).parent / "consumer"
    run("cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    printed = run(build / "consumer")
    assert printed.startswith("-1 0 2 \n")
    assert "TypeError: add" in printed
