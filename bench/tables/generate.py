"""Tokens a second of GPT mini with a cache of keys and values, rows of 32 tokens growing to 256, beside
PyTorch."""
import re

from measure import MILLRACE, PYTORCH, count, last_number, millrace, missing, peers, times

NEEDS = []  # without PyTorch its columns stay empty
MINUTES = 6


def beside(batch, precision):
    """Tokens per second: PyTorch eager, compiled, Millrace; medians of rounds in turns."""
    ours = f"{MILLRACE} bench generate gpt_mini {batch} --precision {precision}"
    if missing(PYTORCH):
        return None, None, last_number(ours.removeprefix(f"{MILLRACE} "))
    lines = peers("generate.py", batch, "--dtype", precision, "--rounds", "3", "--seconds", "1", "--vs", ours)
    speed = {line["peer"].split("/")[0]: line["tokens_per_s"] for line in lines if "tokens_per_s" in line}
    return speed.get("torch"), speed.get("compile"), speed["vs"]


def table():
    rows = [["tokens/s", "PyTorch eager", "PyTorch compiled", "Millrace", "to the better", "of the memory's bandwidth"]]
    for precision in ("fp32", "bf16"):
        for batch in (1, 8):
            eager, compiled, ours = beside(batch, precision)
            best = max(eager or 0, compiled or 0)
            text = millrace(f"bench generate gpt_mini {batch} --precision {precision}")
            share = re.search(r"(\d+) % of the", text)[1]
            rows.append([f"batch {batch}, {precision}", count(eager) if eager else "–", count(compiled) if compiled else "–",
                         count(ours), times(ours / best) if best else "–", f"{share} %"])
    return rows
