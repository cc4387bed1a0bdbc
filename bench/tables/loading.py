"""Sources that become batches, pictures per second, beside decoding and resizing alone."""
import re
import tarfile

from measure import data, millrace

NEEDS = ["photos/photos.tar", "cifar10/train.tar"]
MINUTES = 1


def rounded(number):
    """To four digits."""
    return f"{round(number, min(0, 4 - len(str(int(number))))):,.0f}"


def table():
    photos, cifar = data("photos/photos.tar"), data("cifar10/train.tar")
    with tarfile.open(photos) as tar:
        sizes = [member.size for member in tar if member.name.lower().endswith((".jpg", ".jpeg"))]
    rows = [["", "pictures/s", "alone"]]
    for name, line in ((f"{len(sizes)} photographs of {sum(sizes) / len(sizes) / 1e3:.0f} KB, random resized crop to 224, flip", f"{photos}"),
                       ("CIFAR-10's JPEG files, as they are (`--plain`)", f"{cifar} --plain"),
                       ("CIFAR-10's JPEG files, pad-crop 4 and flip", f"{cifar} --augment 'pad-crop 4,flip'"),
                       ("CIFAR-10 decoded in memory (`--cached`), pad-crop 4 and flip", f"{cifar} --cached --augment 'pad-crop 4,flip'")):
        text = millrace(f"bench data {line}")
        alone = re.search(r"alone, \d+ threads: (\d+)", text)
        rows.append([name, rounded(float(text.split()[-1])), rounded(int(alone[1])) if alone else "–"])
    return rows
