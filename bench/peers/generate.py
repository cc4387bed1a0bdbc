#!/usr/bin/env python3
"""Times PyTorch going on with rows of tokens on this machine: generate.py BATCH [--dtype fp32,bf16]
[--with torch,compile]

gpt_mini of models.py with the keys and values of earlier tokens in a cache that is allocated once
(scaled_dot_product_attention over it), the most probable token each time, from a beginning of --prompt tokens
to the longest. One line of JSON per peer: the median, best and spread over rounds that interleave them. bf16
stores the weights as bf16, which autocast would cast in every step. `--vs 'COMMAND'` runs COMMAND in the same
rounds; the last word that it prints must be tokens a second.
"""
import argparse, json, os, statistics, subprocess, sys, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch
from models import build

LONGEST = 256


class Decoder(torch.nn.Module):
    """A Transformer of models.py, token by token. Attention looks at the places of the cache that are filled;
    compiled, at all of them with a mask, so that shapes stay."""

    def __init__(self, model, batch, dtype, masked):
        super().__init__()
        self.model, self.masked = model, masked
        block = model.blocks[0]
        width = block.qkv.in_features
        shape = (batch, block.heads, LONGEST, width // block.heads)
        for i in range(len(model.blocks)):
            self.register_buffer(f"k{i}", torch.zeros(shape, dtype=dtype))
            self.register_buffer(f"v{i}", torch.zeros(shape, dtype=dtype))

    def attention(self, block, i, x, places, end):
        b, s, d = x.shape
        q, k, v = block.qkv(x).view(b, s, 3, block.heads, d // block.heads).permute(2, 0, 3, 1, 4)
        keys, values = getattr(self, f"k{i}"), getattr(self, f"v{i}")
        keys.index_copy_(2, places, k)
        values.index_copy_(2, places, v)
        if self.masked:
            seen = torch.arange(LONGEST)[None, :] <= places[:, None]
            y = torch.nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
        else:
            y = torch.nn.functional.scaled_dot_product_attention(q, keys[:, :, :end], values[:, :, :end], is_causal=s > 1)
        return block.proj(y.transpose(1, 2).reshape(b, s, d))

    def forward(self, ids, places, end):
        m = self.model
        x = m.tok(ids) + m.pos[places]
        for i, block in enumerate(m.blocks):
            x = x + self.attention(block, i, block.norm1(x), places, end)
            x = x + block.mlp(block.norm2(x))
        return m.head(m.norm(x[:, -1:])).argmax(-1)


def runner(batch, prompt, dtype, compiled):
    """A function that grows all rows once; gives the seconds of the prompts and of the steps."""
    torch.manual_seed(0)
    model = build("gpt_mini")[0].eval().to(dtype)
    decoder = Decoder(model, batch, dtype, compiled).eval()
    step = torch.compile(decoder, dynamic=False) if compiled else decoder
    begin = (torch.arange(prompt)[None, :] * 7 + torch.arange(batch)[:, None]) % 256

    @torch.inference_mode()
    def run():
        start = time.perf_counter()
        ids = decoder(begin, torch.arange(prompt), prompt)
        middle = time.perf_counter()
        for place in range(prompt, LONGEST):
            ids = step(ids, torch.tensor([place]), 0 if compiled else place + 1)
        return middle - start, time.perf_counter() - middle

    @torch.inference_mode()
    def check():
        """The cache gives what the model gives."""
        expected = model(begin)[:, -1].argmax(-1)
        assert (decoder(begin, torch.arange(prompt), prompt)[:, 0] == expected).all()

    if dtype == torch.float32:
        check()
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("batch", type=int)
    parser.add_argument("--prompt", type=int, default=32)
    parser.add_argument("--dtype", default="fp32,bf16")
    parser.add_argument("--with", dest="peers", default="torch,compile")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--vs")
    a = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    runs = {}
    for peer in a.peers.split(","):
        for dtype in a.dtype.split(","):
            try:
                run = runner(a.batch, a.prompt, {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype], peer == "compile")
                run()
                runs[f"{peer}/{dtype}"] = run
            except Exception as error:  # what a peer cannot do is said, and the others go on
                print(json.dumps({"peer": f"{peer}/{dtype}", "error": str(error).splitlines()[0]}), flush=True)
    speeds = {name: [] for name in runs}
    if a.vs:
        speeds["vs"] = []
    steps = a.batch * (LONGEST - a.prompt)
    for _ in range(a.rounds):
        for name, run in runs.items():
            count, seconds = 0, 0
            while seconds < a.seconds:
                seconds += run()[1]
                count += steps
            speeds[name].append(count / seconds)
        if a.vs:
            text = subprocess.run(a.vs, shell=True, check=True, stdout=subprocess.PIPE, text=True).stdout
            speeds["vs"].append(float(text.split()[-1]))
    for name, each in speeds.items():
        print(json.dumps({"peer": name, "batch": a.batch, "tokens_per_s": round(statistics.median(each), 1),
                          "best": round(max(each), 1), "spread": round(max(each) / min(each), 3)}), flush=True)


if __name__ == "__main__":
    main()
