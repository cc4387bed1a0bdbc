"""What the end-to-end tests share: the binary under test, and where its build is."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def binary():
    """The millrace binary: $MILLRACE, else build/release/millrace."""
    path = Path(os.environ.get("MILLRACE", ROOT / "build/release/millrace"))
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


@pytest.fixture
def millrace(binary):
    """Runs the binary: millrace("train", recipe, …) → CompletedProcess; fails unless it exits with `code`."""

    def run(*arguments, code=0, cwd=ROOT, timeout=600, env=None):
        result = subprocess.run(
            [str(binary), *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=cwd,
            timeout=timeout,
            env={**os.environ, **(env or {})},
        )
        assert result.returncode == code, f"exit {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result

    return run


@pytest.fixture(scope="session")
def data():
    """The folder of data sets outside the repository: $MILLRACE_DATA, else ../shared/data; skips when it is absent."""
    folder = Path(os.environ.get("MILLRACE_DATA", ROOT.parent / "shared/data"))
    if not folder.exists():
        pytest.skip(f"no data in {folder}")
    return folder
