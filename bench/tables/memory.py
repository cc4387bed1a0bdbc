"""A training step's plan beside the most anonymous memory of the process."""
from measure import measured_mb

NEEDS = []
MINUTES = 1


def table():
    rows = [["", "planned, MB", "measured, MB", "more, MB", "more"]]
    for network, batches, optimizer in (("lenet", (64, 1024), "adamw"), ("resnet18_cifar", (8, 64, 128), "sgd"),
                                        ("gpt_mini", (1, 4, 16), "adamw")):
        for batch in batches:
            planned, measured = measured_mb(f"bench train {network} {batch} --optimizer {optimizer} --seconds 0.5")
            more = measured - planned
            share = 100 * more / planned
            rows.append([f"{network}, batch {batch:,}", f"{planned:.1f}", f"{measured:.1f}", f"{more:.1f}",
                         f"{share:.{1 if share < 9.95 else 0}f} %"])
    return rows
