"""Writes tests/ops/reference_values_core.inc: element-wise operators, data movement and reductions as PyTorch
has them, at the points where definitions differ between libraries: halves, signs, ties, zeros, NaN,
saturation.

Run it with a Python that has PyTorch: tools/reference_values_core.py > tests/ops/reference_values_core.inc
"""

import torch
import torch.nn.functional as F

from reference_values import case, draw

torch.manual_seed(11)
nan, inf = float("nan"), float("inf")


def f(*values):
    return torch.tensor(values, dtype=torch.float64)


def i32(*values):
    return torch.tensor(values, dtype=torch.int32)


print("// Written by tools/reference_values_core.py with PyTorch; do not edit.")
print("// CASE(name, operator, attributes, operands, results, weights of the first result, gradients, 0)")
print("// clang-format off")

# ---- element-wise ------------------------------------------------------------------------------------------

HALVES = f(-2.5, -1.5, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 1.5, 2.5, 3.5)
for name, function in [("round", torch.round), ("floor", torch.floor), ("ceil", torch.ceil), ("trunc", torch.trunc),
                       ("sign", torch.sign)]:
    case(name, name, {}, [HALVES], function, gradient=False)

for name, function, x in [
        ("abs", torch.abs, f(-2, -0.5, 0, 1.5)),
        ("neg", torch.neg, f(-2, 0, 1.5)),
        ("exp", torch.exp, f(-50, -1, 0, 1, 10)),
        ("log", torch.log, f(1e-30, 0.5, 1, 10)),
        ("log1p", torch.log1p, f(-0.5, -1e-12, 0, 1e-12, 3, 1e20)),
        ("expm1", torch.expm1, f(-50, -1e-12, 0, 1e-12, 1, 20)),
        ("sqrt", torch.sqrt, f(1e-4, 2, 9)),
        ("rsqrt", torch.rsqrt, f(1e-4, 2, 9)),
        ("reciprocal", torch.reciprocal, f(-0.25, 3)),
        ("square", torch.square, f(-3, 0, 0.5)),
        ("sin", torch.sin, f(-100, -1, 0, 3, 20)),
        ("cos", torch.cos, f(-100, -1, 0, 3, 20)),
        ("tanh", torch.tanh, f(-30, -1, 0, 0.25, 30)),
        ("erf", torch.erf, f(-6, -1, 0, 0.25, 6)),
        ("sigmoid", torch.sigmoid, f(-40, -1, 0, 0.25, 40))]:
    case(name, name, {}, [x], function)
for name, function in [("log1p", torch.log1p), ("expm1", torch.expm1), ("exp", torch.exp), ("tanh", torch.tanh),
                       ("sigmoid", torch.sigmoid), ("sqrt", torch.sqrt)]:
    case(f"{name} at the ends", name, {}, [f(inf, 0.0, nan) if name == "sqrt" else f(-inf, inf, nan)]
         if name != "log1p" else [f(-1, inf, nan)], function, gradient=False)

a, b = draw(3, 4), draw(3, 4) + 0.0625
for name, function in [("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", torch.div),
                       ("rem", torch.fmod)]:
    case(name, name, {}, [a, b], function)
for name, function in [("minimum", torch.minimum), ("maximum", torch.maximum)]:
    case(f"{name}, equal operands", name, {}, [f(1, 2, 3, -1), f(2, 2, 1, -1)], function)
    case(f"{name} of NaN", name, {}, [f(1, nan, inf), f(nan, 2, -inf)], function, gradient=False)
case("pow", "pow", {}, [f(0.5, 2, 3, 1, 9), f(2, -1.5, 0, 7, 0.5)], torch.pow)
case("pow of 0", "pow", {}, [f(0, 0, 0), f(0, 1, 2.5)], torch.pow)
case("pow of negative numbers", "pow", {}, [f(-2, -2, -2, -0.5), f(2, 3, 0.5, -1)], torch.pow, gradient=False)

SIGNS = i32(7, -7, 7, -7, 6), i32(2, 2, -2, -2, 3)
case("div of integers", "div", {}, SIGNS, lambda x, y: torch.div(x, y, rounding_mode="trunc"), gradient=False)
case("rem of integers", "rem", {}, SIGNS, torch.fmod, gradient=False)
case("mul of i8 wraps", "mul", {}, [torch.tensor([100, -128, 3], dtype=torch.int8)] * 2, torch.mul, gradient=False)

ORDER = f(1, 2, nan, inf, -0.0), f(2, 2, nan, inf, 0.0)
for name, function in [("less", torch.lt), ("less_equal", torch.le), ("greater", torch.gt),
                       ("greater_equal", torch.ge), ("equal", torch.eq), ("not_equal", torch.ne)]:
    case(name, name, {}, ORDER, function, gradient=False)
TRUTH = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
for name, function in [("logical_and", torch.logical_and), ("logical_or", torch.logical_or),
                       ("logical_xor", torch.logical_xor)]:
    case(name, name, {}, TRUTH, function, gradient=False)
case("logical_not", "logical_not", {}, TRUTH[:1], torch.logical_not, gradient=False)
case("is_nan", "is_nan", {}, [f(1, nan, inf, -inf)], torch.isnan, gradient=False)
case("is_finite", "is_finite", {}, [f(1, nan, inf, -inf)], torch.isfinite, gradient=False)
case("clamp", "clamp", {"low": -1.0, "high": 2.0}, [f(-3, -1, 0, 2, 5)], lambda x: x.clamp(-1, 2))
case("clamp of NaN", "clamp", {"low": -1.0, "high": 2.0}, [f(nan, inf, -inf)], lambda x: x.clamp(-1, 2), gradient=False)
case("select", "select", {}, [TRUTH[0], f(1, 2, 3, 4), f(5, 6, 7, 8)], torch.where)

for dtype in (torch.int8, torch.uint8, torch.int64, torch.bool, torch.bfloat16, torch.float16, torch.float32):
    x = f(0, 0.4, 1.5, 2.9, 100.7) if dtype == torch.uint8 else f(-2.9, -0.5, 0, 0.4, 1.00390625, 100.7)
    case(f"cast to {dtype}", "cast", {"dtype": dtype}, [x], lambda x: x.to(dtype), gradient=False)
case("cast of integers wraps", "cast", {"dtype": torch.int8}, [i32(200, -129, 128, 5)], lambda x: x.to(torch.int8),
     gradient=False)
case("cast of integers to bool", "cast", {"dtype": torch.bool}, [i32(256, 0, -1)], lambda x: x.to(torch.bool),
     gradient=False)

# ---- movement ----------------------------------------------------------------------------------------------

case("broadcast", "broadcast", {"shape": torch.Size((2, 3, 4))}, [draw(3, 1)], lambda x: x.expand(2, 3, 4))
case("reshape", "reshape", {"shape": torch.Size((4, 3))}, [draw(2, 6)], lambda x: x.reshape(4, 3))
case("transpose", "transpose", {"permutation": (2, 0, 1)}, [draw(2, 3, 4)], lambda x: x.permute(2, 0, 1))
case("slice", "slice", {"starts": (1, -4), "ends": (5, -1), "steps": (2, 1)}, [draw(6, 5)], lambda x: x[1:5:2, -4:-1])
case("slice beyond the ends", "slice", {"starts": (-9,), "ends": (9,), "steps": (3,)}, [draw(7)], lambda x: x[-9:9:3])
case("concat", "concat", {"axis": 1}, [draw(2, 3), draw(2, 1)], lambda x, y: torch.cat([x, y], 1))
case("pad", "pad", {"low": (1, 0), "high": (0, 2), "value": 0.5}, [draw(2, 3)], lambda x: F.pad(x, (0, 2, 1, 0), value=0.5))


def spread(x):
    wide = torch.zeros(x.shape[0], 1 + 3 * x.shape[1] - 2, dtype=x.dtype)
    wide[:, 1::3] = x
    return wide


case("pad between", "pad", {"low": (0, 1), "high": (0, 0), "interior": (0, 2)}, [draw(2, 3)], spread)
for axis in (0, 1):
    case(f"gather {axis}", "gather", {"axis": axis}, [draw(4, 3), torch.tensor([2, 0, 2])],
         lambda x, k: x.index_select(axis, k))
case("one_hot", "one_hot", {"depth": 4, "dtype": torch.int64}, [torch.tensor([[3, 0], [1, 1]])],
     lambda k: F.one_hot(k, 4), gradient=False)
case("iota", "iota", {"shape": torch.Size((2, 3)), "axis": 1}, [], lambda: torch.arange(3).expand(2, 3), gradient=False)

# ---- reductions --------------------------------------------------------------------------------------------

for axes, keep in [((1,), False), ((0, 2), True), ((), False)]:
    dims = axes or (0, 1, 2)
    attributes = {"axes": axes, "keep_dims": keep}
    x = draw(2, 3, 4)
    case(f"sum {axes}", "sum", attributes, [x], lambda x: x.sum(dims, keep))
    case(f"mean {axes}", "mean", attributes, [x], lambda x: x.mean(dims, keep))
    case(f"max {axes}", "max", attributes, [x.round()], lambda x: x.amax(dims, keep))  # with ties
    case(f"min {axes}", "min", attributes, [x.round()], lambda x: x.amin(dims, keep))
TIES = torch.tensor([[1, 3, 3], [2, 2, 2], [nan, 5, nan], [-inf, -inf, -inf]], dtype=torch.float64)
for name, function in [("argmax", torch.argmax), ("argmin", torch.argmin), ("max", torch.amax), ("min", torch.amin)]:
    case(f"{name} of ties and NaN", name, {"axes": (1,)}, [TIES], lambda x: function(x, 1), gradient=False)
case("argmax keeps the axis", "argmax", {"axes": (0,), "keep_dims": True}, [i32(3, 1, 3)], lambda x: x.argmax(0, True),
     gradient=False)
case("sum of i32", "sum", {"axes": (0,)}, [i32(2**31 - 1, 1)], lambda x: x.sum(0, dtype=torch.int32), gradient=False)
case("mean of nothing", "mean", {"axes": (0,)}, [draw(0, 2)], lambda x: x.mean(0), gradient=False)
