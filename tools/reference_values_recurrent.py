"""Writes tests/nn/recurrent_values.inc: LSTM and GRU layers, forward and gradients, as PyTorch computes them.

Run it with a Python that has PyTorch: tools/reference_values_recurrent.py > tests/nn/recurrent_values.inc
Inputs are drawn in eighths, so that they are short and exact; everything is computed in float64.
"""

import torch

torch.manual_seed(17)


def draw(*shape):
    return torch.randint(-8, 9, shape).double() / 8


def numbers(t):
    return "{" + ", ".join(f"{v:.9g}" for v in t.detach().flatten().tolist()) + "}"


def stored(name, value, gradient):
    sizes = ", ".join(str(s) for s in value.shape)
    return f'{{"{name}", {{{sizes}}}, {numbers(value)}, {numbers(gradient)}}}'


def flag(value):
    return "true" if value else "false"


def case(name, kind, length, rows, width, hidden, with_state=True, lengths=None, **options):
    layer = getattr(torch.nn, kind)(width, hidden, **options).double()
    first = options.get("batch_first", False)
    x = draw(*((rows, length, width) if first else (length, rows, width))).requires_grad_()
    stacks = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    state = [draw(stacks, rows, hidden).requires_grad_() for _ in range(2 if kind == "LSTM" else 1)]
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(draw(*p.shape))
    given = (tuple(state) if kind == "LSTM" else state[0]) if with_state else None
    if lengths:  # of padded sequences; PyTorch packs them
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=False)
        output, last = layer(packed, given)
        output, _ = torch.nn.utils.rnn.pad_packed_sequence(output, batch_first=first, total_length=length)
    else:
        output, last = layer(x, given)
    results = [output, *(last if kind == "LSTM" else [last])]
    weights = [draw(*r.shape) for r in results]
    sum((r * w).sum() for r, w in zip(results, weights)).backward()
    inputs = [stored("x", x, x.grad)]
    if with_state:
        inputs += [stored(f"state {i}", s, s.grad) for i, s in enumerate(state)]
    inputs += [stored(n, p, p.grad) for n, p in layer.named_parameters()]
    print(f'{{"{name}", {flag(kind == "LSTM")}, {width}, {hidden}, {len(state) if with_state else 0},')
    print(f' {{.layers = {options.get("num_layers", 1)}, .bias = {flag(options.get("bias", True))}, '
          f'.batch_first = {flag(first)}, .bidirectional = {flag(options.get("bidirectional", False))}}},')
    print(" {" + ",\n  ".join(inputs) + "},")
    print(" {" + ",\n  ".join(stored(f"result {i}", r, w) for i, (r, w) in enumerate(zip(results, weights))) + "}" +
          (f",\n {{{', '.join(map(str, lengths))}}}" if lengths else "") + "},")


print("// Written by tools/reference_values_recurrent.py with PyTorch; do not edit.")
print("// name, LSTM or GRU, in, hidden, states given, options, inputs with gradients, results with their weights,")
print("// lengths of padded sequences")
print("// clang-format off")
for kind in ("LSTM", "GRU"):
    case(f"{kind}", kind, 3, 2, 3, 2)
    case(f"{kind}, batch first, from zeros", kind, 4, 1, 2, 3, with_state=False, batch_first=True)
    case(f"{kind} of one step without bias", kind, 1, 2, 2, 2, bias=False)
    case(f"{kind}, two layers in both directions", kind, 2, 2, 2, 2, num_layers=2, bidirectional=True)
for kind in ("LSTM", "GRU"):
    case(f"{kind}, padded", kind, 3, 3, 2, 2, lengths=[1, 3, 2])
    case(f"{kind}, padded, two layers in both directions, batch first", kind, 4, 3, 2, 2, lengths=[4, 1, 2], num_layers=2, bidirectional=True,
         batch_first=True, with_state=False)
