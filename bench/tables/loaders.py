"""The photographs beside other loaders, pictures per second as floats."""
from measure import MILLRACE, PYTORCH, data, peers

NEEDS = [PYTORCH, "webdataset", "PIL", "photos/photos.tar"]
MINUTES = 5


def table():
    photos = data("photos/photos.tar")
    lines = peers("loaders.py", photos, "--with", "pil,webdataset", "--vs", f"{MILLRACE} bench data {photos} --floats")
    speeds = {line["loader"]: line["pictures_per_s"] for line in lines if "pictures_per_s" in line}
    ours = speeds.pop("vs")
    rows = [["", "pictures/s", "Millrace"], ["Millrace", f"{ours:,.0f}", None]]
    for loader in sorted({name.split(",")[0] for name in speeds}):
        mine = {name.split(", ")[1].split()[0]: speed for name, speed in speeds.items() if name.startswith(loader)}
        rows.append([f"{loader.replace('torch', 'PyTorch')}, {', '.join(mine)} workers", ", ".join(f"{s:,.0f}" for s in mine.values()),
                     f"{ours / max(mine.values()):.1f}×"])
    return rows
