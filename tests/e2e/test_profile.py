"""Where the time goes: machine, profile, explain, estimate, and the commands of docs/profile.md."""
import json
import re
import shlex
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import ROOT


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """Kernels and the machine's figures are made once for all tests here."""
    return {"MILLRACE_CACHE": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture(scope="session")
def desk(binary, tmp_path_factory):
    """A folder like the repository's: examples/, data/letters (small), and a model.onnx."""
    onnx = pytest.importorskip("onnx")
    folder = tmp_path_factory.mktemp("desk")
    ports = [[onnx.helper.make_tensor_value_info(name, 1, ["batch", 7])] for name in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Softmax", ["x"], ["y"])], "small", *ports)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")
    (folder / "examples").symlink_to(ROOT / "examples")
    subprocess.run([binary, "letters", folder / "data/letters", "--train", "1300", "--test", "200"], check=True, capture_output=True)
    return folder


def profile_lenet(millrace, cache, tmp_path, *arguments):
    return millrace("profile", "--model", "lenet", "--batch", 32, "--steps", 6, *arguments, env=cache, cwd=tmp_path)


def test_the_machine_is_measured_once_and_kept(millrace, cache):
    first = json.loads(millrace("machine", "--json", env=cache).stdout)
    assert first["fp32_gflops"] >= first["matmul_fp32_gflops"] > 0
    assert first["levels"][-1]["name"] == "RAM"
    assert all(level["gb_per_s"] > 0 for level in first["levels"])
    assert json.loads(millrace("machine", "--json", env=cache).stdout) == first
    text = millrace("machine", env=cache).stdout
    assert "peak fp32" in text and "--refresh" in text


def test_commands_of_the_page_run(millrace, cache, desk):
    page = (ROOT / "docs/profile.md").read_text()
    commands = re.findall(r"^millrace (.*)$", page, re.M)
    assert len(commands) >= 6
    for command in commands:
        assert millrace(*shlex.split(command), env=cache, cwd=desk, timeout=300).stdout
    for verb in ("machine", "inspect", "profile", "explain", "estimate"):
        assert any(command.startswith(verb) for command in commands)


def test_a_profile_adds_up(millrace, cache, tmp_path):
    profile = json.loads(profile_lenet(millrace, cache, tmp_path, "--json").stdout)
    seconds = profile["seconds"]
    parts = sum(seconds[name] for name in ("forward", "backward", "update", "data", "host"))
    assert parts == pytest.approx(seconds["step"], rel=1e-6)
    assert all(seconds[phase] > 0 for phase in ("forward", "backward", "update"))
    for groups in ("kinds", "layers"):
        assert sum(g["seconds"] for g in profile[groups]) == pytest.approx(sum(l["seconds"] for l in profile["launches"]))
        assert sum(g["launches"] for g in profile[groups]) == len(profile["launches"])
    assert sum(l["flops"] for l in profile["launches"]) == pytest.approx(profile["flops"])
    # Forward products of LeNet on 32 pictures; the backward ones are two for each but the first's.
    convolution = [l for l in profile["launches"] if l["operation"] == "conv2d"]
    assert convolution and all(l["phase"] == "forward" and l["flops"] > 1e6 for l in convolution)
    assert all(l["phase"] == "backward" for l in profile["launches"] if l["operation"].startswith("conv2d_"))
    assert profile["advice"] and profile["advice"][0]["seconds"] > 0
    begins = [l["begin"] for l in profile["launches"]]
    assert begins == sorted(begins)


def test_the_terminal_says_what_would_help(millrace, cache, tmp_path):
    text = profile_lenet(millrace, cache, tmp_path, "--depth", 1).stdout
    for part in ("forward", "backward", "optimiser", "of roofline", "What would help most", "items/s"):
        assert part in text
    assert "1. up to" in text


def test_a_recipe_is_profiled_with_its_data(millrace, cache, desk):
    profile = json.loads(millrace("profile", "examples/letters.toml", "--steps", 4, "--json", env=cache, cwd=desk).stdout)
    assert profile["seconds"]["data"] > 0
    assert not (desk / "runs").exists()


def test_the_trace_is_what_perfetto_reads(millrace, cache, tmp_path):
    profile_lenet(millrace, cache, tmp_path, "--trace", "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    assert all({"name", "ts", "dur", "pid", "tid"} <= set(e) and e["dur"] >= 0 for e in spans)
    step = next(e for e in spans if e["cat"] == "step")
    kernels = [e for e in spans if e["tid"] == 2]
    assert {"forward", "backward", "update"} == {e["cat"] for e in kernels}
    assert all(step["ts"] <= e["ts"] and e["ts"] + e["dur"] <= step["ts"] + step["dur"] + 0.01 for e in kernels)


def test_the_page_draws_itself_in_a_browser(millrace, cache, tmp_path):
    profile_lenet(millrace, cache, tmp_path, "--html", "profile.html")
    text = (tmp_path / "profile.html").read_text()
    assert not re.search(r'(src|href)\s*=\s*"?(https?:)?//', text)  # nothing from elsewhere
    browser = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
    if not browser:
        pytest.skip("no Chromium here (Debian: chromium)")
    dom = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/browser", "--virtual-time-budget=5000",
         "--dump-dom", f"file://{tmp_path}/profile.html"],
        capture_output=True, text=True, timeout=120).stdout
    assert 'data-ready="yes"' in dom and "data-error" not in dom
    page = dom.split("<script")[0]
    roofline = page[page.index('id="roofline"'):page.index("Flame chart")]
    assert roofline.count("<circle") > 5 and "peak" in roofline and "NaN" not in page
    flame = page[page.index('id="flame"'):page.index("Kinds of work")]
    assert flame.count("<rect") > 10
    assert ">optimiser<" in flame or "optimiser:" in flame


def test_explain_says_who_built_what_and_draws_it(millrace, cache, tmp_path):
    arguments = ["explain", "--model", "lenet", "--batch", 32]
    found = json.loads(millrace(*arguments, "--json", env=cache).stdout)
    assert [p["name"] for p in found["passes"]][-3:] == ["store-bf16", "layout", "plan"]
    assert all(p["seconds"] >= 0 for p in found["passes"])
    assert found["fused_groups"] > 0 and found["fused_operators"] > found["fused_groups"]
    assert all(from_ < i for i, l in enumerate(found["launches"]) for from_ in l["reads"])
    assert found["peak"] and found["arena_bytes"] > 0
    text = millrace(*arguments, "--svg", tmp_path / "launches.svg", env=cache).stdout
    for part in ("Compilation", "Providers", "declined by", "Launches, in order", "Memory of a step", "one graph"):
        assert part in text
    svg = ElementTree.parse(tmp_path / "launches.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert len(svg.findall(f"{space}g/{space}title")) == len(found["launches"])
    assert len(svg.findall(f".//{space}path")) == sum(len(l["reads"]) for l in found["launches"])


def test_a_process_may_end_while_code_of_products_is_made(millrace, cache, tmp_path):
    """Its thread is waited for before the memory goes that it works on."""
    own = tmp_path / "cache"
    shutil.copytree(cache["MILLRACE_CACHE"], own)
    arguments = ["explain", "--model", "gpt_mini", "--batch", 1]
    millrace(*arguments, env={"MILLRACE_CACHE": str(own)})
    kept = own / "choices/choices-1.tsv"
    kept.write_text(re.sub(r"^([^\t]*\tmatmul f32[^\t]*)\t.*$", r"\1\tonednn", kept.read_text(), flags=re.M))
    if "matmul f32" not in kept.read_text():
        pytest.skip("one provider takes all products of this CPU")
    for _ in range(8):
        assert "onednn" in millrace(*arguments, env={"MILLRACE_CACHE": str(own)}).stdout


def test_an_estimate_is_consistent_and_scales(millrace, cache, desk):
    arguments = ["estimate", "examples/letters.toml", "--cores", "1000", "--gflops", "1e6", "--bandwidth", "1e5", "--memory", "1MB"]
    found = json.loads(millrace(*arguments, "--json", env=cache, cwd=desk).stdout)
    assert found["steps_per_epoch"] == 1300 // 128 and found["steps"] == 4 * found["steps_per_epoch"]
    here, there = found["here"], found["there"]
    assert here["epoch_seconds"] == pytest.approx(found["steps_per_epoch"] * here["step_seconds"] + here["test_seconds"])
    assert here["total_seconds"] > 4 * here["epoch_seconds"] * 0.999
    assert here["fits"] and here["memory_bytes"] > 1e7
    assert there["step_seconds"] > 0
    share = re.search(r", in (\d+) % of the step's time$", here["bound_by"])
    assert here["bound_by"].startswith("data: ") or 0 < int(share[1]) <= 100, here["bound_by"]
    assert not there["fits"] and there["bound_by"].startswith("memory")
    assert not (desk / "runs").exists()


def test_an_estimate_knows_of_parts_of_a_batch(millrace, cache, desk):
    whole, parts = (
        json.loads(millrace("estimate", "examples/letters.toml", f"train.accumulate={n}", "--json", env=cache, cwd=desk).stdout) for n in (1, 4)
    )
    assert parts["steps"] == whole["steps"]
    assert parts["here"]["memory_bytes"] < whole["here"]["memory_bytes"]


def test_wrong_usage_is_named(millrace, cache):
    assert "one of the two" in millrace("profile", code=1, env=cache).stderr
    assert "--memory" in millrace("estimate", "examples/letters.toml", "--memory", "much", code=1, env=cache).stderr
