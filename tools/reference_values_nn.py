"""Writes tests/ops/reference_values.inc: results and gradients of neural network operators as PyTorch
computes them.

Run it with a Python that has PyTorch: tools/reference_values_nn.py > tests/ops/reference_values.inc
Inputs are drawn once, in eighths so that they are short and exact; everything is computed in float64.
"""

import torch
import torch.nn.functional as F

from reference_values import case, draw

torch.manual_seed(7)

print("// Written by tools/reference_values_nn.py with PyTorch; do not edit.")
print("// CASE(name, operator, attributes, operands, results, weights of the first result, gradients, 0)")
print("// clang-format off")

for ta in (False, True):
    for tb in (False, True):
        case(f"matmul {ta} {tb}", "matmul", {"transpose_a": ta, "transpose_b": tb},
             [draw(2, 3, 4) if not ta else draw(2, 4, 3), draw(2, 4, 5) if not tb else draw(2, 5, 4)],
             lambda a, b: (a.mT if ta else a) @ (b.mT if tb else b))

CONVOLUTIONS = [
    ("plain", (2, 2, 5, 4), (3, 2, 3, 2), 1, (0, 0, 0, 0), 1, 1),
    ("same padding", (1, 2, 4, 5), (2, 2, 3, 3), 1, (1, 1, 1, 1), 1, 1),
    ("stride 2, asymmetric padding", (1, 2, 6, 5), (2, 2, 3, 3), (2, 2), (0, 1, 1, 0), 1, 1),
    ("two groups, stride 3 and 1", (1, 4, 5, 4), (4, 2, 2, 2), (3, 1), (1, 0, 0, 1), 1, 2),
    ("depthwise, dilated", (1, 3, 6, 6), (3, 1, 3, 2), 1, (2, 1, 2, 0), (2, 3), 3),
]
for name, x, w, stride, pads, dilation, groups in CONVOLUTIONS:
    top, left, bottom, right = pads
    pair = lambda v: (v, v) if isinstance(v, int) else v
    case(f"conv2d {name}", "conv2d",
         {"strides": pair(stride), "pads": pads, "dilations": pair(dilation), "groups": groups}, [draw(*x), draw(*w)],
         lambda x, w: F.conv2d(F.pad(x, (left, right, top, bottom)), w, None, stride, 0, dilation, groups))

for name, x, kernel, stride, padding in [("2x2", (2, 1, 4, 6), 2, 2, 0), ("3x3 stride 2", (1, 2, 5, 6), 3, 2, 1),
                                         ("overlapping", (1, 1, 4, 4), 2, 1, 0)]:
    attributes = {"kernel": (kernel, kernel), "strides": (stride, stride), "pads": (padding,) * 4}
    case(f"max_pool2d {name}", "max_pool2d", attributes, [draw(*x)],
         lambda x: F.max_pool2d(x, kernel, stride, padding, return_indices=True))
    for counted in (True, False):
        case(f"avg_pool2d {name} {counted}", "avg_pool2d", attributes | {"count_include_pad": counted}, [draw(*x)],
             lambda x: F.avg_pool2d(x, kernel, stride, padding, count_include_pad=counted))


case("scatter_add", "scatter_add", {"axis": 1}, [draw(2, 3, 2), torch.tensor([2, 0, 2, 2]), draw(2, 4, 2)],
     lambda base, indices, updates: base.index_add(1, indices, updates))
case("embedding", "embedding", {}, [draw(5, 3), torch.tensor([[4, 0], [2, 4]])], lambda t, i: F.embedding(i, t))

for axis in (0, -1):
    case(f"softmax {axis}", "softmax", {"axis": axis}, [draw(3, 5)], lambda x: F.softmax(x, axis))
    case(f"log_softmax {axis}", "log_softmax", {"axis": axis}, [draw(3, 5)], lambda x: F.log_softmax(x, axis))

case("layer_norm", "layer_norm", {"eps": 1e-3}, [draw(3, 6), draw(6), draw(6)],
     lambda x, w, b: F.layer_norm(x, (6,), w, b, 1e-3))
case("layer_norm over two axes", "layer_norm", {"axis": 1}, [draw(2, 3, 4), draw(3, 4), draw(3, 4)],
     lambda x, w, b: F.layer_norm(x, (3, 4), w, b, 1e-5))
case("rms_norm", "rms_norm", {"eps": 1e-5}, [draw(3, 6), draw(6)], lambda x, w: F.rms_norm(x, (6,), w, 1e-5))


def batch_norm(x, w, b):
    axes = [d for d in range(x.dim()) if d != 1]
    y = F.batch_norm(x, None, None, w, b, training=True, eps=1e-5)
    return y, x.mean(axes), x.var(axes, unbiased=False)


def batch_norm_inference(x, m, v, w, b):
    with torch.no_grad():
        expected = F.batch_norm(x, m, v, w, b, training=False, eps=1e-5)
    column = lambda p: p.reshape(-1, *[1] * (x.dim() - 2))  # PyTorch has no gradient for the statistics
    y = (x - column(m)) / (column(v) + 1e-5).sqrt() * column(w) + column(b)
    assert torch.allclose(y, expected)
    return y


for shape in ((4, 2, 2, 3), (5, 3)):
    case(f"batch_norm {len(shape)}d", "batch_norm", {"eps": 1e-5}, [draw(*shape), draw(shape[1]), draw(shape[1])],
         batch_norm)
    case(f"batch_norm_inference {len(shape)}d", "batch_norm_inference", {"eps": 1e-5},
         [draw(*shape), draw(shape[1]), draw(shape[1]).abs() + 0.5, draw(shape[1]), draw(shape[1])],
         batch_norm_inference)

spread = torch.cat([draw(6, scale=2) + 1 / 16, torch.tensor([0.0, 30.0, -30.0, 3.5, -3.25])])
for name, attributes, function in [
        ("gelu", {}, F.gelu), ("gelu", {"approximate": "tanh"}, lambda x: F.gelu(x, approximate="tanh")),
        ("silu", {}, F.silu), ("leaky_relu", {"alpha": 0.125}, lambda x: F.leaky_relu(x, 0.125)),
        ("elu", {"alpha": 1.5}, lambda x: F.elu(x, 1.5)), ("softplus", {}, F.softplus), ("hardswish", {}, F.hardswish),
        ("relu", {}, F.relu)]:
    case(f"{name} {attributes or ''}".replace('"', "'").strip(), name, attributes, [spread], function)

for reduction in ("mean", "sum", "none"):
    kind = {"reduction": reduction}
    case(f"mse_loss {reduction}", "mse_loss", kind, [draw(2, 3), draw(2, 3)],
         lambda x, t: F.mse_loss(x, t, reduction=reduction))
    case(f"huber_loss {reduction}", "huber_loss", kind | {"delta": 0.75}, [draw(2, 3), draw(2, 3)],
         lambda x, t: F.huber_loss(x, t, reduction=reduction, delta=0.75))
    case(f"binary_cross_entropy_with_logits {reduction}", "binary_cross_entropy_with_logits", kind,
         [torch.tensor([-40.0, -1.5, 0.25, 40.0]), torch.tensor([0.0, 1.0, 0.25, 1.0])],
         lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction=reduction))
    for smoothing in (0.0, 0.2):
        case(f"cross_entropy {reduction} {smoothing}", "cross_entropy", kind | {"label_smoothing": smoothing},
             [draw(4, 5, scale=3), torch.tensor([0, 4, 2, 2])],
             lambda x, t: F.cross_entropy(x, t, reduction=reduction, label_smoothing=smoothing))
        case(f"cross_entropy_soft {reduction} {smoothing}", "cross_entropy_soft", kind | {"label_smoothing": smoothing},
             [draw(3, 4), draw(3, 4).softmax(1).mul(16).round() / 16],
             lambda x, t: F.cross_entropy(x, t, reduction=reduction, label_smoothing=smoothing))


def attention(q, k, v, mask=None, causal=False, scale=None):
    if causal:
        allowed = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
        mask = allowed
    return F.scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=q.shape[1] != k.shape[1])


case("attention", "attention", {}, [draw(2, 2, 3, 4), draw(2, 2, 4, 4), draw(2, 2, 4, 4)], attention)
case("attention causal", "attention", {"causal": True}, [draw(1, 2, 4, 4), draw(1, 2, 4, 4), draw(1, 2, 4, 4)],
     lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
case("attention causal, two heads share keys, scale", "attention", {"causal": True, "scale": 0.75},
     [draw(1, 4, 2, 2), draw(1, 2, 5, 2), draw(1, 2, 5, 2)], lambda q, k, v: attention(q, k, v, None, True, 0.75))
case("attention with padding; the second picture has no keys", "attention", {},
     [draw(2, 2, 2, 3), draw(2, 2, 3, 3), draw(2, 2, 3, 3), torch.tensor([[True, True, False], [False] * 3])[:, None, None]],
     attention)
case("attention with an added mask", "attention", {},
     [draw(1, 2, 2, 3), draw(1, 2, 3, 3), draw(1, 2, 3, 3), draw(1, 2, 2, 3)], attention)
