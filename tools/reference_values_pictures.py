"""Writes tests/data/codecs/pictures/picture_values.inc: small picture files and their pixels as Pillow
decodes them.

Run it with a Python that has Pillow: tools/reference_values_pictures.py >
tests/data/codecs/pictures/picture_values.inc With a folder as argument the files are written there too (seeds
of the fuzzer).
"""

import io
import random
import sys
from pathlib import Path

from PIL import Image

random.seed(5)
W, H = 9, 7


def noise(mode, bands):
    return Image.frombytes(mode, (W, H), bytes(random.randrange(256) for _ in range(W * H * bands)))


RGB, GREY = noise("RGB", 3), noise("L", 1)
SMOOTH = Image.frombytes("RGB", (W, H), bytes((40 + 9 * x + 11 * y + 30 * c) % 256
                                              for y in range(H) for x in range(W) for c in range(3)))
PALETTE, BITS = RGB.quantize(12), GREY.convert("1")
SIXTEEN = Image.frombytes("I;16", (W, H), bytes(random.randrange(256) for _ in range(W * H * 2)))


def case(name, image, kind, wanted=None, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    raw = file.getvalue()
    picture = Image.open(io.BytesIO(raw))
    if wanted is None:
        wanted = picture if picture.mode == "L" else picture.convert("L" if picture.mode in ("1", "LA") else "RGB")
    channels = 1 if wanted.mode == "L" else 3
    print(f'{{"{name}", {H}, {W}, {channels},\n "{raw.hex()}",\n "{wanted.tobytes().hex()}"}},')
    if len(sys.argv) > 1:
        (Path(sys.argv[1]) / f"{name.replace(' ', '-')}.{kind.lower()}").write_bytes(raw)


print("// Written by tools/reference_values_pictures.py with Pillow; do not edit.")
print("// name, height, width, channels, the file, its pixels")
print("// clang-format off")
case("colour", RGB, "PNG")
case("grey", GREY, "PNG")
case("palette", PALETTE, "PNG")
case("bits", BITS, "PNG")
case("transparent", noise("RGBA", 4), "PNG")
case("grey transparent", noise("LA", 2), "PNG")
values = SIXTEEN.tobytes()
rounded = bytes(((values[i] | values[i + 1] << 8) * 255 + 32895) >> 16 for i in range(0, len(values), 2))
case("sixteen", SIXTEEN, "PNG", Image.frombytes("L", (W, H), rounded))
case("lossless", RGB, "WEBP", lossless=True)
case("lossy", SMOOTH, "WEBP", quality=80)
case("transparent", noise("RGBA", 4), "WEBP", lossless=True, exact=True)
case("palette", PALETTE, "GIF", interlace=0)
case("interlaced", PALETTE, "GIF", interlace=1)
case("grey", GREY, "GIF", GREY.convert("RGB"))
case("two", PALETTE, "GIF", save_all=True, append_images=[RGB.quantize(5)])
case("colour", RGB, "BMP")
case("grey", GREY, "BMP")
case("palette", PALETTE, "BMP")
case("bits", BITS, "BMP", BITS.convert("RGB"))
case("transparent", noise("RGBA", 4), "BMP")
