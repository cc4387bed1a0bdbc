"""Cases of stored values: what the scripts reference_values_*.py share."""

import torch

torch.set_default_dtype(torch.float64)


def draw(*shape, scale=1.0):
    return (torch.randn(shape) * 8 * scale).round() / 8


def number(value):
    if isinstance(value, (int, bool)):
        return str(int(value))
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "-inf" if value < 0 else "inf"
    return f"{value:.8g}"


DTYPES = {torch.float64: "f64", torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16", torch.int8: "i8",
          torch.uint8: "u8", torch.int32: "i32", torch.int64: "i64", torch.bool: "boolean"}


def array(tensor):
    tensor = tensor.detach()
    shape = ", ".join(str(size) for size in tensor.shape)
    values = ", ".join(number(v) for v in tensor.flatten().tolist())
    return f"{{{DTYPES[tensor.dtype]}, {{{shape}}}, {{{values}}}}}"


def attribute(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"int64_t{{{value}}}"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, torch.dtype):
        return DTYPES[value]
    if isinstance(value, torch.Size):
        return "Shape{" + ", ".join(str(v) for v in value) + "}"
    if isinstance(value, str):
        return f'std::string("{value}")'
    return "Ints{" + ", ".join(str(v) for v in value) + "}"


def case(name, op, attributes, inputs, function, gradient=True):
    """One case: the operator, its operands, what `function` makes of them, and the gradients of sum(first
    result * w)."""
    inputs = [i.clone() for i in inputs]
    floats = [i for i in inputs if i.is_floating_point()]
    for i in floats:
        i.requires_grad_(gradient)
    outputs = function(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    seed, gradients = [], []
    if gradient:
        w = draw(*outputs[0].shape)
        seed = [w]
        gradients = torch.autograd.grad((outputs[0] * w).sum(), floats)
    listed = ",\n     ".join(f'{{"{k}", {attribute(v)}}}' for k, v in attributes.items())
    print(f'CASE("{name}", "{op}",\n    (Attributes{{{listed}}}),')
    for group in (inputs, outputs, seed, gradients):
        print("    (Arrays{" + ",\n            ".join(array(a) for a in group) + "}),")
    print("    0)")
