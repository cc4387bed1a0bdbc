"""Writes tests/data/augment/augment_values.inc: what Pillow's operations, and torchvision's published
definitions, make of small pictures.

Run it with a Python that has Pillow and numpy: tools/reference_values_augment.py >
tests/data/augment/augment_values.inc
"""

import math

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

H, W = 11, 13
rng = np.random.default_rng(3)
NOISE = rng.integers(0, 256, (H, W, 3)).astype(np.uint8)
y, x, c = np.mgrid[0:H, 0:W, 0:3]
MANY = np.sqrt(rng.integers(0, 60000, (24, 24, 3))).astype(np.uint8)
SMOOTH = (40 + 9 * x + 7 * y + 30 * c + rng.integers(0, 9, (H, W, 3))).astype(np.uint8)


def planes(pixels):
    return np.asarray(pixels).transpose(2, 0, 1).tobytes().hex()


PICTURES = ((NOISE, "noise"), (SMOOTH, "smooth"), (MANY, "many"))


def case(operation, numbers, function):
    # Histograms of few pixels are not equalized.
    for source, name in PICTURES if operation == "equalize" else PICTURES[:2]:
        values = ", ".join(repr(float(n)) for n in numbers)
        print(f'{{"{operation}", "{name}", {{{values}}},\n "{planes(function(Image.fromarray(source)))}"}},')


def adjust_hue(image, turn):
    h, s, v = image.convert("HSV").split()
    h = np.array(h, dtype=np.uint8)
    h += np.array(turn * 255).astype(np.int32).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(h), s, v)).convert("RGB")


def gaussian_blur(image, size, sigma):
    at = np.linspace(-(size - 1) * 0.5, (size - 1) * 0.5, size)
    weights = np.exp(-0.5 * (at / sigma) ** 2)
    weights /= weights.sum()
    half = size // 2
    padded = np.pad(np.asarray(image, np.float64), ((half, half), (half, half), (0, 0)), mode="reflect")
    result = sum(weights[i] * weights[j] * padded[i:i + H, j:j + W] for i in range(size) for j in range(size))
    return Image.fromarray(np.round(result).astype(np.uint8))


def affine(angle, tx, ty, scale, shear_x, shear_y):
    rot, sx, sy = math.radians(angle), math.radians(shear_x), math.radians(shear_y)
    cx, cy = W * 0.5, H * 0.5
    a = math.cos(rot - sy) / math.cos(sy)
    b = -math.cos(rot - sy) * math.tan(sx) / math.cos(sy) - math.sin(rot)
    c = math.sin(rot - sy) / math.cos(sy)
    d = -math.sin(rot - sy) * math.tan(sx) / math.cos(sy) + math.cos(rot)
    m = [v / scale for v in (d, -b, 0.0, -c, a, 0.0)]
    m[2] += m[0] * (-cx - tx) + m[1] * (-cy - ty) + cx
    m[5] += m[3] * (-cx - tx) + m[4] * (-cy - ty) + cy
    return m


def perspective(corners):
    rows, wanted = [], []
    for (px, py), (qx, qy) in zip(corners, [(0, 0), (W - 1, 0), (W - 1, H - 1), (0, H - 1)]):
        rows += [[px, py, 1, 0, 0, 0, -qx * px, -qx * py], [0, 0, 0, px, py, 1, -qy * px, -qy * py]]
        wanted += [qx, qy]
    return np.linalg.solve(np.array(rows, float), np.array(wanted, float)).tolist()


print("// Written by tools/reference_values_augment.py with Pillow; do not edit.")
print("// operation, picture, its parameters, the planes of the result")
print("// clang-format off")
for source, name in PICTURES:
    print(f'{{"picture", "{name}", {{}},\n "{planes(source)}"}},')
for factor in (0, 0.35, 1, 1.7):
    case("brightness", [factor], lambda i: ImageEnhance.Brightness(i).enhance(factor))
    case("contrast", [factor], lambda i: ImageEnhance.Contrast(i).enhance(factor))
    case("saturation", [factor], lambda i: ImageEnhance.Color(i).enhance(factor))
    case("sharpness", [factor], lambda i: ImageEnhance.Sharpness(i).enhance(factor))
for turn in (0, 0.1, -0.3):
    case("hue", [turn], lambda i: adjust_hue(i, turn))
case("solarize", [100], lambda i: ImageOps.solarize(i, 100))
case("posterize", [3], lambda i: ImageOps.posterize(i, 3))
case("equalize", [], ImageOps.equalize)
case("autocontrast", [], ImageOps.autocontrast)
for size, sigma in ((3, 0.7), (7, 1.9)):
    case("blur", [size, sigma], lambda i: gaussian_blur(i, size, sigma))
for numbers in ((0, 0, 0, 1, 0, 0), (30, 0, 0, 1, 0, 0), (-12, 2, -3, 1.3, 15, 0), (170, 0, 1, 0.6, -20, 10)):
    case("affine", numbers, lambda i: i.transform((W, H), Image.Transform.AFFINE, affine(*numbers), Image.Resampling.BILINEAR))
for corners in (((1, 2), (10, 0), (12, 9), (3, 8)), ((4, 3), (11, 4), (9, 7), (0, 10))):
    case("perspective", [v for corner in corners for v in corner],
         lambda i: i.transform((W, H), Image.Transform.PERSPECTIVE, perspective(corners), Image.Resampling.BILINEAR))
