"""Pictures a second that predict makes something of, beside loading alone and the model alone: 250
photographs, networks of ONNX files."""
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

from measure import MILLRACE, PYTHON, PYTORCH, ROOT, count, data, in_turns, last_number, output

NEEDS = [PYTORCH, "onnxscript", "photos/photos.tar"]
MINUTES = 2
ROWS = [("resnet18", "fp32"), ("resnet18", "bf16"), ("mobilenet_v2", "fp32"), ("mobilenet_v2", "bf16")]
MEANS = """
import sys
from onnx import TensorProto, helper, save
x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 3, s, s]) for n, s in (("x", 224), ("y", 1)))
graph = helper.make_graph([helper.make_node("GlobalAveragePool", ["x"], ["y"])], "means", [x], [y])
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), sys.argv[1])
"""


def pictures_per_second(model, precision, photos, one):
    """Of all but one: what comes before the first picture is over does not count."""
    def seconds(samples):
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            subprocess.run([MILLRACE, "predict", model, samples, "--precision", precision, "-o", f"{folder}/out.npy"], check=True,
                           capture_output=True)
            return time.perf_counter() - begin
    return (len(list(photos.iterdir())) - 1) / (seconds(photos) - seconds(one))


def table():
    rows = [["pictures/s", "loading alone", "model alone", "predict", "of the slower", "of what there are CPUs for"]]
    with tempfile.TemporaryDirectory() as folder:
        photos, means = Path(folder) / "photos", Path(folder) / "means.onnx"
        photos.mkdir()
        with tarfile.open(data("photos/photos.tar")) as tar:
            for member in tar.getmembers():
                if member.name.lower().endswith((".jpg", ".jpeg")):
                    (photos / Path(member.name).name).write_bytes(tar.extractfile(member).read())
        one = sorted(photos.iterdir())[0]
        output(PYTHON, "-c", MEANS, means)
        for network, precision in ROWS:
            output(PYTHON, ROOT / "bench/peers/bench.py", "infer", network, 1, "--export", folder)
            file = Path(folder) / f"{network}.onnx"
            speed = in_turns({"loading": lambda: pictures_per_second(means, "fp32", photos, one),
                              "model": lambda: last_number(f"bench infer {file} 1 --precision {precision} --seconds 1"),
                              "predict": lambda: pictures_per_second(file, precision, photos, one)})
            slower = min(speed["loading"], speed["model"])
            both = 1 / (1 / speed["loading"] + 1 / speed["model"])
            rows.append([f"{network}, {precision}", count(speed["loading"]), count(speed["model"]), count(speed["predict"]),
                         f"{speed['predict'] / slower:.2f}", f"{speed['predict'] / both:.2f}"])
    return rows
