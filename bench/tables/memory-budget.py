"""With --memory: what a step needs, and how fast it is when activations are computed again."""
from measure import in_turns, last_number, millrace, planned_mb

NEEDS = []
MINUTES = 5


def table():
    rows = [["", "allowed, MB", "needs, MB", "activations", "items/s"]]
    for name, line, given, budgets in (("GPT mini, batch 16, fp32 ({} MB of parameters and state)", "gpt_mini 16", 131, (560, 490, 400)),
                                       ("ResNet-50, batch 16, SGD, fp32 ({} MB)", "resnet50 16 --optimizer sgd", 214, (1200, 900, 715))):
        lines = {None: f"bench train {line}", **{mb: f"bench train {line} --memory {mb}MB" for mb in budgets}}
        speeds = in_turns({mb: lambda each=each: last_number(each) for mb, each in lines.items()})
        needs = {mb: planned_mb(millrace(f"{each} --seconds 0.1")) for mb, each in lines.items()}
        for mb in lines:
            saved = 1 - (needs[mb] - given) / (needs[None] - given)
            slower = 1 - speeds[mb] / speeds[None]
            rows.append([name.format(given) if mb is None else None, f"{mb:,}" if mb else "–", f"{needs[mb]:,.0f}",
                         f"{needs[mb] - given:,.0f}" + (f" (−{100 * saved:.0f} %)" if mb else ""),
                         f"{speeds[mb]:.1f}" + (f" (−{100 * slower:.0f} %)" if mb else "")])
    return rows
