#!/usr/bin/env python3
"""Measures operators of inference on a GPU with PyTorch and writes tables of tangram.operator_times/1, one file for each
operator, which `tangram kernels synth --times` takes."""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).resolve().parent))
import profile_gpu
from profile_gpu import Problem, note

EXAMPLES = """\
examples:
  scripts/measure_operators.py -o times
      times/gemm.json, times/attention_prefill.json, times/experts.json, times/stream.json; then
      `tangram kernels accuracy times/gemm.json -o gemm.json`, and gemm.json is for `tangram kernels synth --times`
  scripts/measure_operators.py --operator gemm --dtype fp8 -o times
      products of fp8 with one scale a tensor
  scripts/measure_operators.py --operator stream --dry-run
      the shapes that would be measured, without PyTorch and without a GPU

"""

ABOUT = """\
what a row is:
  An operator alone, as often as --repetitions in a captured CUDA graph, back to back; the time of the graph over their
  number, the median of five graphs. Weights lie in more copies than the L2 cache holds, activations are where the
  operator before would have left them. stream: addition, RMSNorm, and a gated activation where PyTorch compiles it;
  gemm: F.linear, of fp8 with one scale a tensor; attention_prefill: causal F.scaled_dot_product_attention;
  experts: two grouped products around a gated activation, tokens spread evenly (PyTorch 2.8).
exit status: 0 done, 1 nothing could be measured, 4 invalid input, 64 usage
"""

GRAPHS = 5
WIDTHS = (1024, 2048, 4096, 8192, 14336)  # of matrices: hidden and feed-forward sizes of models from 1 B to 70 B
HEADS = ((8, 1), (32, 8), (64, 8))  # queries, keys and values: a rank's share under tp 8 among them
EXPERTS = ((2048, 768, 8, 128), (4096, 14336, 2, 8), (7168, 2048, 8, 256))  # Qwen3-30B-A3B, Mixtral 8x7B, DeepSeek-V3

torch: Any = None
functional: Any = None

Shape = tuple[int, ...]
Launch = Callable[[], Any]


@dataclass(frozen=True)
class Setting:
    device: Any
    dtype: Any
    precision: str
    repetitions: int
    cache_bytes: int  # of the GPU's L2 cache
    memory_bytes: int  # that operands may take

    def tensor(self, *shape: int) -> Any:
        return torch.randn(shape, device=self.device, dtype=torch.float32).mul_(0.1).to(self.dtype)

    def copies(self, size: int) -> int:
        """Of an operand of `size` bytes, so that none is in the cache when its turn comes again."""
        return max(1, min(self.repetitions, -(-4 * self.cache_bytes // max(1, size))))


@dataclass(frozen=True)
class Table:
    """An operator: the names of what is interpolated, the shapes, and what makes the launches of a shape."""

    interpolated: tuple[str, ...]
    shapes: list[Shape]
    prepare: Callable[[Setting, Shape], list[list[Launch]]]  # kinds of the operator, each with its turns


def powers(first: int, last: int, factor: int = 2) -> list[int]:
    values = [first]
    while values[-1] * factor <= last:
        values.append(values[-1] * factor)
    return values


# Operators ------------------------------------------------------------------------------------------------------------


def gemm(setting: Setting, shape: Shape) -> list[list[Launch]]:
    m, n, k = shape
    x = setting.tensor(m, k)
    weights = [setting.tensor(n, k) for _ in range(setting.copies(n * k * x.element_size()))]
    if setting.precision != "fp8":
        return [[lambda w=w: functional.linear(x, w) for w in weights]]
    one = torch.ones((), device=setting.device)
    return [[lambda w=w: torch._scaled_mm(x, w.t(), one, one, out_dtype=torch.bfloat16) for w in weights]]


def attention_prefill(setting: Setting, shape: Shape) -> list[list[Launch]]:
    batch, tokens, heads, kv_heads, width = shape
    query = setting.tensor(batch, heads, tokens, width)
    key, value = (setting.tensor(batch, kv_heads, tokens, width) for _ in range(2))
    return [[lambda: functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)]]


def experts(setting: Setting, shape: Shape) -> list[list[Launch]]:
    tokens, hidden, inner, chosen, count = shape
    grouped = getattr(functional, "grouped_mm", None) or getattr(torch, "_grouped_mm", None)
    if grouped is None:
        raise Problem(f"PyTorch {torch.__version__} has no grouped products", "2.8 has", 1)
    rows = tokens * chosen
    ends = torch.tensor([rows * (i + 1) // count for i in range(count)], device=setting.device, dtype=torch.int32)
    x = setting.tensor(rows, hidden)
    turns = setting.copies(3 * count * hidden * inner * x.element_size())
    pairs = [(setting.tensor(count, hidden, 2 * inner), setting.tensor(count, inner, hidden)) for _ in range(turns)]

    def run(up: Any, down: Any) -> Any:
        gate, value = grouped(x, up, offs=ends).chunk(2, dim=-1)
        return grouped(functional.silu(gate) * value, down, offs=ends)

    return [[lambda p=p: run(*p) for p in pairs]]


def stream(setting: Setting, shape: Shape) -> list[list[Launch]]:
    """Bytes read and written: three tensors of an addition and of a gated activation, two of a norm."""
    width = 4096
    element = 2 if setting.precision != "fp32" else 4

    def rows(tensors: int) -> int:
        return max(1, round(shape[0] / (tensors * width * element)))

    a, b = setting.tensor(rows(3), width), setting.tensor(rows(3), width)
    x, scale = setting.tensor(rows(2), width), setting.tensor(width)
    kinds: list[list[Launch]] = [[lambda: a + b]]
    norm = getattr(functional, "rms_norm", None)
    if norm is not None and setting.device.type == "cuda":
        kinds.append([lambda: norm(x, (width,), scale)])
    if setting.device.type == "cuda" and hasattr(torch, "compile"):
        gated = compiled_gate()
        kinds.append([lambda: gated(a, b)])
    return kinds


@functools.cache
def compiled_gate() -> Any:
    return torch.compile(lambda gate, up: functional.silu(gate) * up, dynamic=True)


def tables() -> dict[str, Table]:
    rows = powers(1, 8192)
    heads = [(*pair, 128) for pair in HEADS]
    prefill = [(batch, tokens, *h) for h in heads for batch in (1, 4, 16) for tokens in powers(128, 32768)
               if batch * tokens <= 65536]
    return {
        "gemm": Table(("n", "k", "m"), [(m, n, k) for n, k in itertools.product(WIDTHS, WIDTHS) for m in rows], gemm),
        "attention_prefill": Table(("heads", "batch", "tokens"), prefill, attention_prefill),
        "experts": Table(("tokens",), [(t, *e) for e in EXPERTS for t in powers(16, 16384, 4)], experts),
        "stream": Table((), [(n,) for n in powers(1 << 16, 1 << 30)], stream),
    }


# Measuring ------------------------------------------------------------------------------------------------------------


def microseconds(setting: Setting, turns: list[Launch]) -> float:
    """Of one launch."""
    launches = [turns[i % len(turns)] for i in range(max(setting.repetitions, len(turns)))]
    for launch in turns[:3]:
        launch()
    if setting.device.type != "cuda":
        began = time.perf_counter()
        for launch in launches:
            launch()
        return 1e6 * (time.perf_counter() - began) / len(launches)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for launch in launches:
            launch()
    graph.replay()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(GRAPHS + 1)]
    marks[0].record()
    for mark in marks[1:]:
        graph.replay()
        mark.record()
    torch.cuda.synchronize()
    times = [begin.elapsed_time(end) for begin, end in zip(marks, marks[1:])]
    return 1e3 * statistics.median(times) / len(launches)


def operand_bytes(operator: str, shape: Shape) -> int:
    """Of the largest operands, roughly: what is too large for the GPU is left out."""
    if operator == "gemm":
        m, n, k = shape
        return 2 * (m * n + n * k + m * k)
    if operator == "experts":
        tokens, hidden, inner, chosen, count = shape
        return 6 * count * hidden * inner + 2 * tokens * chosen * (2 * hidden + 3 * inner)
    if operator == "attention_prefill":
        batch, tokens, heads, kv_heads, width = shape
        return 4 * batch * tokens * width * (heads + kv_heads)
    return 2 * shape[0]


def measure(setting: Setting, operator: str, table: Table) -> list[list[float]]:
    rows: list[list[float]] = []
    for shape in table.shapes:
        if 4 * operand_bytes(operator, shape) > setting.memory_bytes:
            note(f"{operator} {shape}: left out, too large for the memory")
            continue
        try:
            rows += [[*shape, rounded(microseconds(setting, turns))] for turns in table.prepare(setting, shape)]
        except RuntimeError as error:  # out of memory, or a kernel that does not take the shape
            note(f"{operator} {shape}: left out, {str(error).splitlines()[0]}")
        if setting.device.type == "cuda":
            torch.cuda.empty_cache()
    return rows


def rounded(value: float) -> float:
    return float(f"{value:.4g}")


# The whole ------------------------------------------------------------------------------------------------------------


def import_torch() -> None:
    global torch, functional
    profile_gpu.import_torch()
    torch, functional = profile_gpu.torch, profile_gpu.functional


def setting_of(args: argparse.Namespace, device: Any) -> Setting:
    cuda = device.type == "cuda"
    if args.dtype == "fp8" and (not cuda or torch.cuda.get_device_capability(device) < (8, 9)):
        raise Problem("this device has no products of fp8", "give --dtype bf16", 1)
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32,
             "fp8": getattr(torch, "float8_e4m3fn", None)}[args.dtype]
    properties = torch.cuda.get_device_properties(device) if cuda else None
    return Setting(device, dtype, args.dtype, args.repetitions, getattr(properties, "L2_cache_size", 1 << 20),
                   properties.total_memory if cuda else 1 << 26)  # a processor is there to try the script


def source_of(args: argparse.Namespace, setting: Setting) -> str:
    if args.source:
        return str(args.source)
    where = "a processor" if setting.device.type == "cpu" else torch.cuda.get_device_name(setting.device)
    return (f"measured by scripts/measure_operators.py on {where}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}; "
            "captured graphs, weights from memory and not from the L2 cache")


def document_of(operator: str, table: Table, rows: list[list[float]], gpu: str, dtype: str,
                source: str) -> dict[str, Any]:
    interpolated = list(table.interpolated)
    return {"schema": "tangram.operator_times/1", "operator": operator, "dtype": dtype, "source": source,
            "interpolated": interpolated, "gpus": [gpu], "rows": rows}


def written(document: dict[str, Any]) -> str:
    """JSON with one row a line."""
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in document.items() if key != "rows"]
    rows = ",\n".join("    " + json.dumps(row) for row in document["rows"])
    return "{\n" + ",\n".join(lines) + ",\n  \"rows\": [\n" + rows + "\n  ]\n}\n"


class Parser(profile_gpu.Parser):
    examples = EXAMPLES


def operators(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in tables():
            raise argparse.ArgumentTypeError(f"\"{name}\" is no operator: {', '.join(tables())}")
    return names


def arguments() -> argparse.Namespace:
    parser = Parser(prog="measure_operators.py", description=__doc__, epilog=ABOUT, usage="measure_operators.py [options]",
                    formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    add = parser.add_argument
    add("-o", "--output", metavar="FOLDER", type=Path, help="where the tables go")
    add("--operator", type=operators, default=list(tables()), metavar="NAME,...", help="default: all")
    add("--dtype", choices=["bf16", "fp16", "fp32", "fp8"], default="bf16", help="default bf16; fp8: gemm alone")
    add("--shapes", type=profile_gpu.positive, metavar="N", help="at most N shapes of an operator, evenly chosen")
    add("--repetitions", type=profile_gpu.positive, default=20, metavar="N", help="launches in a graph; default 20")
    add("--device", choices=["cuda", "cpu"], default="cuda")
    add("--gpu", metavar="NAME", help="the GPU type as Tangram calls it; default: from the driver's name")
    add("--source", metavar="TEXT", help="default: this script, the software and how it measured")
    add("--dry-run", action="store_true", help="list what would be measured")
    return parser.parse_args()


def thinned(table: Table, most: int | None) -> Table:
    if most is None or len(table.shapes) <= most:
        return table
    chosen = [table.shapes[i * len(table.shapes) // most] for i in range(most)]
    return Table(table.interpolated, chosen, table.prepare)


def run(args: argparse.Namespace) -> int:
    wanted = {name: thinned(tables()[name], args.shapes) for name in args.operator}
    if args.dtype == "fp8" and list(wanted) != ["gemm"]:
        raise Problem("fp8 is measured for products alone", "add --operator gemm", 64)
    if args.dry_run:
        for name, table in wanted.items():
            print(f"{name}: {len(table.shapes)} shapes, {table.shapes[0]} to {table.shapes[-1]}")
        return 0
    if args.output is None or not args.output.resolve().parent.is_dir():
        raise Problem("-o FOLDER is missing, or its parent folder does not exist", "see --help for examples", 64)
    import_torch()
    fleet = profile_gpu.Fleet.here()
    device = profile_gpu.device_here(args, fleet)
    gpu = profile_gpu.gpu_name(args, device)
    setting = setting_of(args, device)
    args.output.mkdir(exist_ok=True)
    written_any = False
    for name, table in wanted.items():
        with torch.no_grad():
            rows = measure(setting, name, table)
        if rows:
            text = written(document_of(name, table, rows, gpu, args.dtype, source_of(args, setting)))
            profile_gpu.save(text, str(args.output / f"{name}.json"))
            written_any = True
    if not written_any:
        raise Problem("nothing could be measured", "the notes above say why", 1)
    return 0


if __name__ == "__main__":
    sys.exit(profile_gpu.exit_status(lambda: run(arguments())))
