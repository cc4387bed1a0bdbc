"""From a minimal Debian 12 without any compiled file to a trained model and passed tests, in seconds."""
import re
import tempfile

from measure import ROOT, output

NEEDS = ["root"]
MINUTES = 15


def table():
    with tempfile.TemporaryDirectory() as folder:
        text = output(ROOT / "tools/bare_debian.sh", folder + "/root")
    demo, tests = re.findall(r"exit 0 after (\d+) s", text)
    return [["", "seconds"],
            ["`./dev demo`, all in all", demo],
            ["… of it data set, packing, training, evaluation, prediction", re.search(r"Done in (\d+) s", text)[1]],
            ["`./dev test` after it: the tests' packages, their build, all tests", tests]]
