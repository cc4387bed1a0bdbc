"""With --accumulate: activations and gradients, and items per second, of a batch worked off in parts."""
from measure import in_turns, last_number, millrace, planned_mb

NEEDS = []
MINUTES = 4
PARTS = (1, 2, 4)


def table():
    rows = [["", "parts", *map(str, PARTS)]]
    for name, line, given in (("GPT mini, batch 16, fp32", "gpt_mini 16", 131), ("ResNet-50, batch 16, SGD, fp32", "resnet50 16 --optimizer sgd", 214)):
        lines = {parts: f"bench train {line} --accumulate {parts}" for parts in PARTS}
        speeds = in_turns({parts: lambda each=each: last_number(each) for parts, each in lines.items()})
        needs = {parts: planned_mb(millrace(f"{each} --seconds 0.1")) for parts, each in lines.items()}
        rows.append([name, "activations and gradients, MB", *(f"{needs[parts] - given:,.0f}" for parts in PARTS)])
        rows.append([None, "items/s", *(f"{speeds[parts]:.1f}" for parts in PARTS)])
    return rows
