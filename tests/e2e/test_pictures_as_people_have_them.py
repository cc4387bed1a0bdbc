"""Pictures as people have them: turned by EXIF, in CMYK, grey among colour. Pillow judges."""

import json
import shutil
import struct
import subprocess
import tarfile

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageOps

WIDTH, HEIGHT = 40, 24
RECIPE = """
[data]
train = "{train}"
{data}
[input]
{input}
[model]
layers = ["conv 4 3 stride=2", "relu", "global-avg-pool", "linear 2"]
[train]
steps = 2
batch = {batch}
optimizer = {{ kind = "sgd", lr = 0.1 }}
"""


def smooth(seed, width=WIDTH, height=HEIGHT):
    """A picture that is different in all corners, with little for a JPEG to lose."""
    corners = np.random.default_rng(seed).integers(0, 256, (2, 2, 3)).astype(np.uint8)
    return Image.fromarray(corners).resize((width, height), Image.BICUBIC)


def write_recipe(path, train, data="", input="", batch=4):
    path.write_text(RECIPE.format(train=train, data=data, input=input, batch=batch))
    return path


def class_folders(folder, count=4):
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
        for i in range(count):
            smooth(i + 100 * (label == "dog")).save(folder / label / f"{i}.png")
    return folder


@pytest.fixture(scope="module")
def run(binary, tmp_path_factory):
    """A model of colour pictures of 40×24, hardly trained: its logits are as good as a look at the pixels."""
    folder = tmp_path_factory.mktemp("model")
    recipe = write_recipe(folder / "r.toml", class_folders(folder / "data"))
    subprocess.run([binary, "train", recipe, "--out", folder / "run"], check=True, capture_output=True)
    return folder / "run"


def logits(result):
    return {line["input"]: line["logits"] for line in map(json.loads, result.stdout.splitlines())}


@pytest.fixture
def same_as(millrace, run, tmp_path):
    """The model sees in each file what it sees in the picture: same_as({path: Pillow's picture})."""

    def compare(pairs):
        judged = {}
        for i, (path, picture) in enumerate(pairs.items()):
            judged[path] = tmp_path / f"judge-{i}.png"
            picture.save(judged[path])
        seen = logits(millrace("predict", run, *pairs, "--json"))
        wanted = logits(millrace("predict", run, *judged.values(), "--json"))
        assert len(set(map(tuple, wanted.values()))) > 1 or len(wanted) == 1  # the model does look
        for path, judge in judged.items():
            assert seen[str(path)] == wanted[str(judge)], path

    return compare


def save_turned(path, picture, orientation, kind=None, **options):
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture.save(path, kind, exif=exif.tobytes(), **options)
    return path


def upright(path):
    with Image.open(path) as picture:
        return ImageOps.exif_transpose(picture).convert("RGB")


# ---- EXIF orientation


@pytest.mark.parametrize("ending", ["jpg", "png", "webp", "tif"])
def test_all_eight_orientations_are_turned_upright(same_as, tmp_path, ending):
    options = {"webp": {"lossless": True}, "jpg": {"quality": 95}}.get(ending, {})
    files = [save_turned(tmp_path / f"{o}.{ending}", smooth(7), o, **options) for o in range(1, 9)]
    assert upright(files[5]).size == (HEIGHT, WIDTH)
    same_as({file: upright(file) for file in files})


def test_exif_of_motorola_order_and_what_is_no_orientation(same_as, tmp_path):
    def with_exif(name, exif):
        smooth(8).save(tmp_path / name, exif=exif)
        return tmp_path / name

    big = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
    nine = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x09\0\0\0\0\0\0\0"
    cut = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12"
    files = [with_exif("big.jpg", big), with_exif("nine.jpg", nine), with_exif("cut.jpg", cut)]
    plain = Image.open(files[1]).convert("RGB")
    assert plain.size == (WIDTH, HEIGHT)
    same_as({files[0]: upright(files[0]), files[1]: plain, files[2]: plain})


@pytest.fixture(scope="module")
def turned(tmp_path_factory):
    """A class for each orientation, a photograph of uneven sides in each; upright all are 301×203."""
    folder = tmp_path_factory.mktemp("turned")
    back = {1: None, 2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # Image.Transpose
    for o in range(1, 9):
        picture = smooth(9, 301, 203)
        if back[o] is not None:
            picture = picture.transpose(Image.Transpose(back[o]))
        (folder / f"o{o}").mkdir()
        save_turned(folder / f"o{o}" / "1.jpg", picture, o, quality=97, subsampling=0)
        assert upright(folder / f"o{o}" / "1.jpg").size == (301, 203)
    return folder


def first_batch(millrace, tmp_path, recipe):
    """The pictures of the first step, CHW, by their files."""
    millrace("train", recipe, "--out", tmp_path / "run")
    why = json.loads(millrace("data", "why", tmp_path / "run", "--step", "1", "--write", tmp_path / "step", "--json").stdout)
    files = [sample["name"] for sample in why["samples"]]
    return dict(zip(files, np.load(tmp_path / "step" / "pictures.npy"), strict=True))


@pytest.mark.parametrize(
    "keys, tolerance",
    [("resize = 48", 0), ("resize = 48\ncrop = 32", 0), ('augment = ["random-resized-crop 24 scale=1..1 ratio=1.48..1.485"]', 4)],
)
def test_training_sees_pictures_upright(millrace, turned, tmp_path, keys, tolerance):
    recipe = write_recipe(tmp_path / "r.toml", turned, input=keys, batch=8)
    recipe.write_text(recipe.read_text().replace("linear 2", "linear 8"))
    seen = first_batch(millrace, tmp_path, recipe)
    assert len(seen) == 8
    for o in range(1, 9):
        picture = upright(turned / f"o{o}" / "1.jpg")
        if tolerance:  # decoded at a part of its size; the part is the whole, or nearly
            wanted = picture.resize((24, 24), Image.BILINEAR)
        elif "crop" in keys:
            side = 301 * 48 // 203
            left = round((side - 32) / 2)
            wanted = picture.resize((side, 48), Image.BILINEAR).crop((left, 8, left + 32, 40))
        else:
            wanted = picture.resize((48, 48), Image.BILINEAR)
        own = seen[str(turned / f"o{o}" / "1.jpg")].transpose(1, 2, 0).astype(int)
        difference = np.abs(np.asarray(wanted).astype(int) - own)
        assert difference.max() <= tolerance, (o, difference.max())


def test_packing_statistics_and_conditions_know_upright_pictures(millrace, turned, tmp_path):
    millrace("pack", turned, tmp_path / "packed", "--resize", "64", "--keep-keys")
    with tarfile.open(next((tmp_path / "packed").glob("*.tar"))) as tar:
        members = [m for m in tar.getmembers() if m.name.endswith(".jpg")]
        assert len(members) == 8
        for member in members:
            picture = Image.open(tar.extractfile(member))
            assert picture.size == (301 * 64 // 203, 64) and not picture.getexif()
            wanted = upright(turned / "o1" / "1.jpg").resize(picture.size, Image.BILINEAR)
            assert np.abs(np.asarray(wanted).astype(int) - np.asarray(picture)).mean() < 3, member.name

    millrace("pack", turned, tmp_path / "as-they-are")  # byte for byte
    found = millrace("data", "query", tmp_path / "as-they-are", "width = 301 and height = 203", "--count").stdout
    assert found.split()[0] == "8"
    stat = json.loads(millrace("data", "stat", turned, "--json").stdout)
    assert [(s["width"], s["height"], s["pictures"]) for s in stat["sources"][0]["sizes"]] == [(301, 203, 8)]
    assert len(stat["alike"]) == 1 and len(stat["alike"][0]["pictures"]) == 8


def test_data_show_draws_pictures_upright(millrace, turned, tmp_path):
    side = 96  # smaller ones are enlarged
    recipe = write_recipe(tmp_path / "r.toml", turned, input=f"resize = {side}", batch=8)
    millrace("data", "show", recipe, "-o", tmp_path / "sheet.png", "--columns", "8")
    sheet = np.asarray(Image.open(tmp_path / "sheet.png").convert("RGB")).astype(int)
    tiles = [sheet[:side, x : x + side] for x in range(0, sheet.shape[1], side + 2)]
    wanted = np.asarray(upright(turned / "o1" / "1.jpg").resize((side, side), Image.BILINEAR)).astype(int)
    assert len(tiles) == 8
    for tile in tiles:
        assert abs(tile - wanted).max() <= 6  # JPEG loses a little, in each orientation something else


# ---- colours and depths


def test_cmyk_and_ycck(same_as, tmp_path):
    picture = smooth(11).convert("CMYK")
    picture.save(tmp_path / "cmyk.jpg", quality=95)  # with Adobe's marker, inverted, as Photoshop writes it
    raw = (tmp_path / "cmyk.jpg").read_bytes()
    marker = raw.index(b"\xff\xee\x00\x0eAdobe")
    (tmp_path / "ycck.jpg").write_bytes(raw[: marker + 15] + b"\x02" + raw[marker + 16 :])
    (tmp_path / "plain.jpg").write_bytes(raw[:marker] + raw[marker + 16 :])
    picture.save(tmp_path / "cmyk.tif", compression="tiff_lzw")
    files = [tmp_path / name for name in ("cmyk.jpg", "ycck.jpg", "plain.jpg", "cmyk.tif")]
    assert all(Image.open(file).mode == "CMYK" for file in files)
    same_as({file: Image.open(file).convert("RGB") for file in files})


def test_png_of_every_kind(same_as, tmp_path):
    rgb, draw = smooth(12), np.random.default_rng(3)
    alpha = Image.fromarray(draw.integers(0, 256, (HEIGHT, WIDTH)).astype(np.uint8))
    sixteen = draw.integers(0, 65536, (HEIGHT, WIDTH)).astype(np.uint16)
    rgb.quantize(9).save(tmp_path / "palette.png")
    rgb.quantize(9).save(tmp_path / "transparent.png", transparency=4)
    rgb.quantize(9).save(tmp_path / "shades.png", transparency=bytes(range(0, 250, 28)))
    rgb.putalpha(alpha)
    rgb.save(tmp_path / "rgba.png")
    grey = rgb.convert("L")
    grey.putalpha(alpha)
    grey.save(tmp_path / "la.png")
    rgb.convert("1").save(tmp_path / "bits.png")
    Image.fromarray(sixteen).save(tmp_path / "sixteen.png")
    pairs = {path: Image.open(path).convert("RGB") for path in sorted(tmp_path.glob("*.png")) if path.stem != "sixteen"}
    pairs[tmp_path / "sixteen.png"] = Image.fromarray(np.round(sixteen / 257).astype(np.uint8)).convert("RGB")
    assert len(pairs) == 7
    same_as(pairs)


def test_tiff_of_every_kind(same_as, tmp_path):
    rgb, draw = smooth(13), np.random.default_rng(4)
    pairs = {}

    def case(name, picture, wanted=None, **options):
        path = tmp_path / f"{name}.tif"
        picture.save(path, **options)
        pairs[path] = Image.open(path).convert("RGB") if wanted is None else wanted

    for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
        case(compression, rgb, compression=compression)
    case("grey", rgb.convert("L"))
    case("bits", rgb.convert("1"))
    case("fax", rgb.convert("1"), compression="group4")
    case("palette", rgb.quantize(9))
    rgba = rgb.copy()
    rgba.putalpha(Image.fromarray(draw.integers(0, 256, (HEIGHT, WIDTH)).astype(np.uint8)))
    case("rgba", rgba)
    case("tiles", smooth(14, 70, 50), tile=(16, 16), compression="tiff_lzw")
    case("pages", rgb, save_all=True, append_images=[smooth(15)])
    case("white-is-0", rgb.convert("L"), tiffinfo={262: 0})
    sixteen = draw.integers(0, 65536, (HEIGHT, WIDTH)).astype(np.uint16)
    rounded = Image.fromarray(np.round(sixteen / 257).astype(np.uint8)).convert("RGB")
    case("sixteen", Image.fromarray(sixteen), rounded)
    case("motorola", Image.fromarray(sixteen.astype(">u2")), rounded)
    same_as(pairs)


def test_tiff_of_floats_says_so(millrace, run, tmp_path):
    Image.fromarray(np.zeros((9, 9), np.float32)).save(tmp_path / "f.tif")
    result = millrace("predict", run, tmp_path / "f.tif", code=1)
    assert "floating-point" in result.stderr and "16 bits" in result.stderr


def test_what_cameras_and_programs_write(same_as, tmp_path):
    rgb, other = smooth(16), smooth(17)
    pairs = {}

    def case(name, kind, picture=rgb, wanted=None, **options):
        picture.save(tmp_path / name, kind, **options)
        pairs[tmp_path / name] = wanted or Image.open(tmp_path / name).convert("RGB")

    case("progressive.JPG", "JPEG", progressive=True)
    case("two eyes.mpo", "MPO", save_all=True, append_images=[other])
    case("gif called.jpg", "GIF", rgb.quantize(30))
    case("film.gif", "GIF", rgb.quantize(30), save_all=True, append_images=[other.quantize(30)])
    case("film.webp", "WEBP", save_all=True, append_images=[other], lossless=True)
    case("film.png", "PNG", save_all=True, append_images=[other])
    case("profile.jpg", "JPEG", icc_profile=ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes())
    raw = np.asarray(rgb.convert("RGBA"))[::-1, :, [2, 1, 0, 3]].tobytes()
    masks = (0xFF0000, 0xFF00, 0xFF, 0xFF000000)  # as programs write them that keep transparency
    head = struct.pack("<2s6I", b"BM", 122 + len(raw), 0, 122, 108, WIDTH, HEIGHT)
    head += struct.pack("<2H10I", 1, 32, 3, len(raw), 0, 0, 0, 0, *masks) + bytes(52)
    (tmp_path / "masks.bmp").write_bytes(head + raw)
    pairs[tmp_path / "masks.bmp"] = rgb
    assert Image.open(tmp_path / "masks.bmp").convert("RGB").tobytes() == rgb.tobytes()
    case("more behind.jpeg", "JPEG")
    with open(tmp_path / "more behind.jpeg", "ab") as file:
        file.write(b"a camera's own" * 99)
    same_as(pairs)


def test_arithmetic_jpeg(same_as, tmp_path):
    if not shutil.which("jpegtran"):
        pytest.skip("there is no jpegtran (Debian: libjpeg-turbo-progs)")
    smooth(18).save(tmp_path / "huffman.jpg", quality=95)
    subprocess.run(["jpegtran", "-arithmetic", "-outfile", tmp_path / "arithmetic.jpg", tmp_path / "huffman.jpg"], check=True)
    same_as({tmp_path / "arithmetic.jpg": Image.open(tmp_path / "huffman.jpg").convert("RGB")})


# ---- grey among colour


def mixed(folder, grey, colour):
    """Two classes of pictures, of which the first are grey."""
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
    for i in range(grey + colour):
        picture = smooth(i)
        picture = picture.convert("L") if i < grey else picture
        ending = ("png", "jpg", "webp", "tif")[i % 4] if i >= grey else ("png", "jpg", "pgm", "tif")[i % 4]
        picture.save(folder / ("cat", "dog")[i % 2] / f"{i:03}.{ending}")
    return folder


@pytest.mark.parametrize(
    "grey, colour, keys, note, channels",
    [
        (5, 11, "", "5 of 16 pictures are grey: read as RGB", 3),
        (11, 5, "", "5 of 16 pictures are of colour: read as grey", 1),
        (15, 1, "", "1 of 16 pictures is of colour: read as grey", 1),
        (5, 11, "channels = 1", "11 of 16 pictures are of colour: read as grey", 1),
        (11, 5, "channels = 3", "11 of 16 pictures are grey: read as RGB", 3),
        (0, 16, "", None, 3),
    ],
)
def test_grey_pictures_and_those_of_colour_are_brought_together(millrace, tmp_path, grey, colour, keys, note, channels):
    recipe = write_recipe(tmp_path / "r.toml", mixed(tmp_path / "data", grey, colour), input=keys, batch=16)
    printed = millrace("train", recipe, "--out", tmp_path / "run").stdout
    assert (note or "read as") in printed if note else "read as" not in printed
    assert f"channels = {channels}" in (tmp_path / "run" / "recipe.toml").read_text()
    millrace("data", "why", tmp_path / "run", "--step", "1", "--write", tmp_path / "step")
    pictures = np.load(tmp_path / "step" / "pictures.npy")
    assert pictures.shape == (16, channels, HEIGHT, WIDTH)
    # The other kind is read by evaluation, prediction and a training that goes on, too.
    millrace("eval", tmp_path / "run", tmp_path / "data")
    files = sorted((tmp_path / "data").rglob("*.*"))
    assert len(millrace("predict", tmp_path / "run", *files).stdout.splitlines()) == 16
    assert note is None or note not in millrace("eval", tmp_path / "run", tmp_path / "data").stdout


def test_pixels_are_converted_as_pillow_does(millrace, tmp_path):
    recipe = write_recipe(tmp_path / "r.toml", mixed(tmp_path / "data", 11, 5), batch=16)
    seen = first_batch(millrace, tmp_path, recipe)
    assert len(seen) == 16
    for name, planes in seen.items():
        assert (planes[0] == np.asarray(Image.open(name).convert("L"))).all(), name


# ---- test pictures that training has seen


def rough(seed):
    grid = np.random.default_rng(seed).integers(0, 256, (6, 8, 3)).astype(np.uint8)
    return Image.fromarray(grid).resize((160, 120), Image.BICUBIC)


def test_training_tells_of_test_pictures_that_it_has_seen(millrace, tmp_path):
    for i in range(30):
        path = tmp_path / "train" / ("cat", "dog")[i % 2] / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        rough(i).save(path, quality=90)
        path = tmp_path / "test" / ("cat", "dog")[i % 2] / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        rough(1000 + i).save(path, quality=90)
    recipe = write_recipe(tmp_path / "r.toml", tmp_path / "train", f'test = "{tmp_path / "test"}"', "resize = 32")
    assert "among those of training" not in millrace("train", recipe, "--out", tmp_path / "clean").stdout
    shutil.copy(tmp_path / "train" / "cat" / "4.jpg", tmp_path / "test" / "dog" / "copy.jpg")
    rough(7).save(tmp_path / "test" / "dog" / "again.png")
    save_turned(tmp_path / "test" / "dog" / "turned.jpg", rough(9).transpose(Image.Transpose.ROTATE_90), 6, quality=70)
    printed = millrace("train", recipe, "--out", tmp_path / "run").stdout
    assert "3 of 33 pictures to test on are among those of training, or nearly" in printed
    assert f"({tmp_path}/test/dog/copy.jpg = {tmp_path}/train/cat/4.jpg)" in printed
    assert "compared were" not in printed


def test_conditions_that_part_a_source_have_no_repeats_of_themselves(millrace, tmp_path):
    folder = tmp_path / "all"
    for i in range(20):
        path = folder / ("cat", "dog")[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        rough(i).save(path)
    recipe = write_recipe(tmp_path / "r.toml", folder, "test_share = 0.2", "resize = 32")
    assert "among those of training" not in millrace("train", recipe, "--out", tmp_path / "run").stdout
