"""Millrace as a backend for onnx's own tests (onnx.backend.test.BackendTest).

`MILLRACE_RUNNER=build/release/millrace_onnx_runner .venv/bin/python tests/onnx/backend.py` runs all of them
and says how many pass; with names behind it, those whose names contain one. tests/e2e/test_onnx_backend.py
runs those that conformance.txt lists.
"""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import onnx
from onnx import numpy_helper
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test import BackendTest

RUNNER = os.environ.get("MILLRACE_RUNNER", str(Path(__file__).resolve().parents[2] / "build/release/millrace_onnx_runner"))
# Not the user's own.
os.environ["MILLRACE_CACHE"] = os.environ.get("MILLRACE_TEST_CACHE", str(Path(RUNNER).resolve().parent / "test-cache"))
WRITE = {"tensor_type": numpy_helper.from_array, "sequence_type": numpy_helper.from_list, "optional_type": numpy_helper.from_optional}
READ = {
    "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
    "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
    "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
}


class Runner:
    """The program that runs the models: one process for all of them."""

    process = None

    @classmethod
    def run(cls, model, folder):
        if cls.process is None or cls.process.poll() is not None:
            cls.process = subprocess.Popen([RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.process.stdin.write(f"{model}\n{folder}\n")
        cls.process.stdin.flush()
        answer = cls.process.stdout.readline().strip()
        if answer != "ok":
            raise RuntimeError(answer or "the runner died")


class Prepared(BackendRep):
    def __init__(self, model):
        self.model = model

    def wanted(self, count):
        """The inputs that values are given for, with their places: initialisers are left out where all others
        are as many."""
        stored = {each.name for each in self.model.graph.initializer}
        everything = list(enumerate(self.model.graph.input))
        free = [(i, info) for i, info in everything if info.name not in stored]
        return free if count == len(free) else everything

    def run(self, inputs, **kwargs):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(self.model.SerializeToString())
            for value, (i, info) in zip(inputs, self.wanted(len(inputs))):
                kind = info.type.WhichOneof("value")
                proto = WRITE[kind](value) if kind != "optional_type" else written_optional(value)
                (Path(folder) / f"input_{i}.pb").write_bytes(proto.SerializeToString())
            Runner.run(path, folder)
            outputs = []
            for i, info in enumerate(self.model.graph.output):
                message, read = READ[info.type.WhichOneof("value")]
                proto = message()
                proto.ParseFromString((Path(folder) / f"output_{i}.pb").read_bytes())
                outputs.append(read(proto))
            return tuple(outputs)


def written_optional(value):
    if value is None:
        return onnx.OptionalProto(elem_type=onnx.OptionalProto.UNDEFINED)
    return numpy_helper.from_optional(value)


class Millrace(Backend):
    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        return Prepared(model)

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"


def cases(wanted=lambda name: True):
    """(name, test) of onnx's cases for the CPU: "test_abs_cpu"."""
    found = []
    for case in BackendTest(Millrace, __name__).test_cases.values():
        for name in unittest.defaultTestLoader.getTestCaseNames(case):
            if name.endswith("_cpu") and wanted(name):
                found.append((name, case(name)))
    return found


def outcome(test):
    """"" when a test passes, "skipped", or the last line of why not."""
    result = unittest.TestResult()
    test.run(result)
    if result.skipped:
        return "skipped"
    wrong = result.failures + result.errors
    return wrong[0][1].strip().splitlines()[-1] if wrong else ""


if __name__ == "__main__":
    parts = sys.argv[1:]
    passed, skipped, failed = 0, 0, 0
    for case_name, case in cases(lambda name: not parts or any(part in name for part in parts)):
        why = outcome(case)
        passed, skipped, failed = passed + (not why), skipped + (why == "skipped"), failed + (why not in ("", "skipped"))
        if why:
            print(f"{case_name}: {why}", flush=True)
    print(f"{passed} pass, {failed} fail, {skipped} are skipped")
