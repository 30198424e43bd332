#!/usr/bin/env python3
"""Records the kernels of one step of inference with PyTorch, for `tangram kernels import`."""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import inspect
import json
import math
import re
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator

sys.path.insert(0, str(Path(__file__).resolve().parent))
import profile_gpu
from profile_gpu import Problem, note, positive

EXAMPLES = """\
examples:
  scripts/record_kernels.py config.json --phase decode --requests 32 --context 2048 -o trace
      a model of Hugging Face with random weights; then `tangram kernels import trace/kineto.json trace/execution.json`
  scripts/record_kernels.py config.json --phase prefill --context 2048 --layers 4 -o trace
      the first layers alone, where the whole model does not fit
  scripts/record_kernels.py --script serve.py -o trace
      whatever a function of your own launches: any engine, any model
  scripts/record_kernels.py --script serve.py --ptx -o trace
      with the PTX of Triton kernels and how each was launched
  scripts/record_kernels.py config.json --dry-run
      what would be recorded, without PyTorch and without a GPU

"""

ABOUT = """\
--script FILE:
  A Python file that defines step(), which runs one step of inference. It is called for warm-up, then recorded; a step
  must launch the same kernels each time. The file may define `tensors`, a dictionary of names and tensors: buffers of
  launches are called so, others by number.
what is written:
  kineto.json      torch.profiler: kernels, their times and streams, and the operators that launched them
  execution.json   ExecutionTraceObserver of the same step: the tensors of each operator
  step.ptx         with --ptx: all Triton kernels of one more step, each under a name of its own
  launches.jsonl   their launches, for `tangram kernels analyze|import step.ptx --launch launches.jsonl`
  entries.json     what else a launch takes: bytes of shared memory and warps of each entry of step.ptx
  Kernels that are not Triton's are in the traces alone. Graphs of CUDA hide operators: record without them.
On a machine without Tangram it needs profile_gpu.py beside it.
exit status: 0 done, 1 nothing could be recorded, 4 invalid input, 64 usage
"""

MOST_INTEGER_BYTES = 4096  # of a buffer whose integers are kept: tokens, positions and block tables of a small step
THREADS_OF_A_WARP = 32
CACHE_QUANTUM = 64  # tokens: attention of PyTorch copies masks whose rows are not aligned


# PTX of several modules as one ----------------------------------------------------------------------------------------

NAME = r"[A-Za-z_$%][\w$]*"
HEADER = re.compile(r"^\s*\.(version|target|address_size)\s+(.*?)\s*$", re.MULTILINE)
# Directives of debuggers: lines, files, and sections with their braces.
DEBUG = re.compile(r"^\s*\.(loc|file)\s.*$|^\s*\.section\s+[\w.]+\s*\{[^{}]*\}", re.MULTILINE)
FUNCTION = re.compile(rf"\.(?:entry|func)\s+(?:\([^)]*\)\s*)?({NAME})")
VARIABLE = re.compile(r"^\s*(?:\.visible\s+|\.weak\s+)?\.(?:global|const|shared)\b[^;=({]*?"
                      rf"({NAME})\s*(?:\[[^;=]*\])?\s*[;=]")


@dataclass
class Module:
    """One module: its header, what it takes from outside, and the rest."""

    version: tuple[int, ...]
    target: str
    externals: list[str]
    body: str


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def statements(text: str) -> Iterator[str]:
    """What stands between braces counts as part of the statement around it."""
    depth, begin = 0, 0
    for i, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if depth == 0 and letter in ";}":
            yield text[begin:i + 1]
            begin = i + 1
    yield text[begin:]


def module_of(text: str) -> Module:
    text = DEBUG.sub("", without_comments(text))
    header = dict(HEADER.findall(text))
    if "version" not in header or "target" not in header:
        raise Problem("PTX without .version or .target", "is it the text of PTX?", 1)
    externals: list[str] = []
    kept: list[str] = []
    for statement in statements(HEADER.sub("", text)):
        is_external = statement.lstrip().startswith(".extern")
        (externals if is_external else kept).append(statement.strip())
    version = tuple(int(part) for part in header["version"].split("."))
    return Module(version, header["target"], externals, "\n".join(part for part in kept if part))


def defined_in(body: str) -> set[str]:
    names: set[str] = set()
    for statement in statements(body):
        for pattern in (FUNCTION, VARIABLE):
            found = pattern.search(statement.split("{")[0] if pattern is FUNCTION else statement)
            if found:
                names.add(found.group(1))
    return names


def merged(modules: dict[str, str]) -> str:
    """Modules by a suffix, which is put behind all names that a module defines: kernels of one name may differ."""
    parts = {suffix: module_of(text) for suffix, text in modules.items()}
    targets = sorted({part.target for part in parts.values()})
    if len(targets) > 1:
        raise Problem(f"kernels were compiled for different GPUs: {', '.join(targets)}", "record one GPU at a time", 1)
    version = max(part.version for part in parts.values())
    externals = sorted({external for part in parts.values() for external in part.externals})
    lines = [f".version {'.'.join(map(str, version))}", f".target {targets[0]}", ".address_size 64", *externals]
    for suffix, part in parts.items():
        names = defined_in(part.body)
        # A dot behind it makes it an instruction: a kernel may be called "add".
        known = re.compile(r"(?<![\w$%.])(" + "|".join(map(re.escape, sorted(names))) + r")(?![\w$.])")
        lines.append(known.sub(rf"\1_{suffix}", part.body))
    return "\n".join(lines) + "\n"


def parameters_of(ptx: str, entry: str) -> int:
    found = re.search(rf"\.entry\s+{re.escape(entry)}\s*\(([^)]*)\)", without_comments(ptx))
    if not found:
        raise Problem(f"the PTX of {entry} has no such entry", "", 1)
    return found.group(1).count(".param")


def threads_of(ptx: str, warps: int) -> int:
    """As the kernel itself demands: kernels with specialized warps have more than they say."""
    found = re.search(r"\.reqntid\s+(\d+)", ptx)
    return int(found.group(1)) if found else warps * THREADS_OF_A_WARP


# Launches of Triton kernels -------------------------------------------------------------------------------------------

torch: Any = None


class Buffers:
    """Allocations by name. One of another size at the same address is another one."""

    def __init__(self, tensors: dict[str, Any]):
        self.names: dict[tuple[int, int], str] = {}
        self.launched: set[str] = set()
        for name, tensor in tensors.items():
            self.names.setdefault(self.place(tensor), name)

    @staticmethod
    def place(tensor: Any) -> tuple[int, int]:
        storage = storage_of(tensor)
        return storage.data_ptr(), storage.nbytes()

    def argument(self, tensor: Any) -> dict[str, Any]:
        """Small integers as the first launch finds them: addresses may depend on them."""
        first, size = place = self.place(tensor)
        name = self.names.setdefault(place, f"buffer{len(self.names)}")
        out: dict[str, Any] = {"buffer": name, "bytes": size}
        if tensor.data_ptr() != first:
            out["offset"] = tensor.data_ptr() - first
        if name not in self.launched and size <= MOST_INTEGER_BYTES and holds_integers(tensor):
            out["integers"] = integers_of(contents_of(tensor))
        self.launched.add(name)
        return out


def storage_of(tensor: Any) -> Any:
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()


def contents_of(tensor: Any) -> bytes:
    whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage_of(tensor))
    return bytes(whole.cpu().tolist())


def holds_integers(tensor: Any) -> bool:
    return not (tensor.dtype.is_floating_point or tensor.dtype.is_complex or tensor.dtype == torch.bool)


def integers_of(data: bytes) -> list[int]:
    return [number for (number,) in struct.iter_unpack("<i", data[:len(data) // 4 * 4])]


def scalar(value: Any) -> int | float:
    """Numbers that JSON lacks are written as their bits."""
    value = getattr(value, "value", value)  # tl.constexpr
    if value is None:
        return 0
    if isinstance(value, float):
        return value if math.isfinite(value) else int(struct.unpack("<i", struct.pack("<f", value))[0])
    number = int(value)
    return number - (1 << 64) if number >= 1 << 63 else number


class LaunchLog:
    """What Triton launched, in order, while `is_on`."""

    def __init__(self, tensors: dict[str, Any]):
        self.is_on = False
        self.buffers = Buffers(tensors)
        self.modules: dict[str, str] = {}  # PTX by the suffix of its names
        self.entries: dict[str, dict[str, Any]] = {}
        self.launches: list[dict[str, Any]] = []

    def add(self, kernel: Any, grid: tuple[int, ...], values: tuple[Any, ...]) -> None:
        if 0 in grid:
            return
        ptx, metadata = kernel.asm["ptx"], kernel.metadata
        suffix = hashlib.sha256(ptx.encode()).hexdigest()[:8]
        name = f"{metadata.name}_{suffix}"
        if suffix not in self.modules:
            self.modules[suffix] = ptx
            self.entries[name] = {"kernel": metadata.name, "shared_bytes": metadata.shared, "warps": metadata.num_warps}
        blocks = [int(grid[0]) * getattr(metadata, "num_ctas", 1), int(grid[1]), int(grid[2])]
        self.launches.append({"entry": name, "grid": blocks, "block": [threads_of(ptx, metadata.num_warps), 1, 1],
                              "arguments": self.arguments(kernel, values)})

    def arguments(self, kernel: Any, values: tuple[Any, ...]) -> list[dict[str, Any]]:
        name = kernel.metadata.name
        out = [self.argument(name, kind, value) for kind, value in typed(kernel, values)]
        missing = parameters_of(kernel.asm["ptx"], name) - len(out)
        scratch = [key for key in ("global_scratch_size", "profile_scratch_size") if getattr(kernel.metadata, key, 0)]
        if missing < 0 or scratch:
            raise Problem(f"{name} takes {scratch[0] if scratch else 'other arguments'} that a launch cannot hold",
                          "leave --ptx out: the traces have the kernel, too", 1)
        return out + [{"value": 0}] * missing  # scratch memory, of which it uses none

    def argument(self, name: str, kind: Any, value: Any) -> dict[str, Any]:
        if hasattr(value, "data_ptr"):
            return self.buffers.argument(value)
        if not isinstance(kind, str) or kind.startswith("tensordesc") or (kind.startswith("*") and value is not None):
            raise Problem(f"{name} takes a {kind}, which is no tensor", "pass tensors and numbers to kernels", 1)
        return {"value": scalar(value)}


def typed(kernel: Any, values: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    """Types and values of what a launch passes: constants are compiled in. Older versions of Triton leave them out."""
    kinds = list(kernel.src.signature.values())
    passed = [kind for kind in kinds if kind != "constexpr"]
    if len(values) == len(kinds):
        return [(kind, value) for kind, value in zip(kinds, values) if kind != "constexpr"]
    if len(values) != len(passed):
        raise Problem(f"{kernel.metadata.name} was launched with {len(values)} arguments, and its signature has "
                      f"{len(kinds)}", "this version of Triton is not known here; 3.2 to 3.6 are", 1)
    return list(zip(passed, values))


class Watched:
    """Stands for a kernel's launcher, and writes launches down."""

    # Triton passes the grid, stream, function, two kinds of metadata and two hooks before the kernel's arguments.
    BEFORE_ARGUMENTS = 9

    def __init__(self, launcher: Any, kernel: Any, log: LaunchLog):
        self.launcher, self.kernel, self.log = launcher, kernel, log

    def __call__(self, *values: Any) -> Any:
        if self.log.is_on:
            self.log.add(self.kernel, values[:3], values[self.BEFORE_ARGUMENTS:])
        return self.launcher(*values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.launcher, name)


def watch_triton(log: LaunchLog) -> None:
    """Every kernel that is loaded from here on. torch.compile has launchers of its own, which are turned off."""
    try:
        from triton.compiler import CompiledKernel
    except ImportError as error:
        raise Problem(f"Triton cannot be imported: {error}", "--ptx records its kernels; leave it out", 1) from error
    load = CompiledKernel._init_handles

    def load_and_watch(kernel: Any) -> None:
        load(kernel)
        name = "_run" if "_run" in vars(kernel) else "run"  # before Triton 3.4
        launcher = vars(kernel)[name]
        if not isinstance(launcher, Watched):
            setattr(kernel, name, Watched(launcher, kernel, log))

    CompiledKernel._init_handles = load_and_watch
    if not hasattr(torch, "compile"):
        return
    import torch._inductor.config as inductor

    settings = {"use_static_cuda_launcher": False, "use_static_triton_launcher": False, "compile_threads": 1,
                "force_disable_caches": True}
    for key, value in settings.items():
        if hasattr(inductor, key):
            setattr(inductor, key, value)


# Steps ----------------------------------------------------------------------------------------------------------------


@dataclass
class Step:
    run: Callable[[], Any]
    tensors: dict[str, Any]  # by name


def read_config(path: Path) -> dict[str, Any]:
    file = path / "config.json" if path.is_dir() else path
    values = profile_gpu.parse(file)
    if not isinstance(values, dict) or not isinstance(values.get("model_type"), str):
        raise Problem(f"{file} is no model of Hugging Face",
                      "its config.json has a \"model_type\"; other models can be recorded with --script")
    return values


def layers_of(args: argparse.Namespace, values: dict[str, Any]) -> dict[str, Any]:
    """The config with the first --layers layers alone."""
    if args.layers is None:
        return values
    key = next((key for key in ("num_hidden_layers", "n_layer") if key in values), None)
    if key is None or not isinstance(values[key], int):
        raise Problem(f"{args.model} does not say how many layers it has", "leave --layers out")
    if args.layers > values[key]:
        raise Problem(f"--layers {args.layers}: {args.model} has {values[key]}", "", 64)
    kept = {**values, key: args.layers}
    if isinstance(kept.get("layer_types"), list):
        kept["layer_types"] = kept["layer_types"][:args.layers]
    return kept


def random_model(args: argparse.Namespace, values: dict[str, Any], device: Any) -> Any:
    try:
        import transformers
    except ImportError as error:
        raise Problem(f"transformers cannot be imported: {error}",
                      f"`{sys.executable} -m pip install transformers`, or bring a model of your own with --script",
                      1) from error
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[args.dtype]
    options = {key: value for key, value in values.items() if key not in ("model_type", "dtype", "torch_dtype")}
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        config = transformers.AutoConfig.for_model(values["model_type"], **options)
        with torch.device(device):
            model = transformers.AutoModelForCausalLM.from_config(config)
    except (ValueError, KeyError, TypeError) as error:
        raise Problem(f"{args.model}: transformers {transformers.__version__} makes no model of it: {error}",
                      "a newer version may; any model can be recorded with --script") from error
    finally:
        torch.set_default_dtype(before)
    return model.to(dtype).eval().requires_grad_(False)


def cache_for(model: Any, tokens: int) -> Any:
    """One that is written in place, as serving engines do, where this version of transformers has it."""
    import transformers

    try:
        return transformers.StaticCache(config=model.config, max_cache_len=tokens)
    except TypeError as error:
        note(f"transformers {transformers.__version__} has another StaticCache ({error}): the cache is copied to grow")
        return transformers.DynamicCache()


def step_of_model(args: argparse.Namespace, device: Any) -> Step:
    model = random_model(args, layers_of(args, read_config(args.model)), device)
    tensors = dict(model.named_parameters())
    vocabulary = model.get_input_embeddings().weight.shape[0]
    prompt = torch.randint(0, vocabulary, (args.requests, args.context), device=device)
    forward = torch.compile(model) if args.compile else model
    if args.phase == "prefill":
        return Step(lambda: forward(input_ids=prompt, use_cache=True, logits_to_keep=1), tensors)
    steps = args.warmup + 3  # a token for each: warm-up, traces twice, launches
    cache = cache_for(model, -(-(args.context + steps) // CACHE_QUANTUM) * CACHE_QUANTUM)
    model(input_ids=prompt, past_key_values=cache, use_cache=True, logits_to_keep=1)
    last = prompt[:, -1:].contiguous()
    return Step(lambda: forward(input_ids=last, past_key_values=cache, use_cache=True), tensors)


def step_of_script(path: Path) -> Step:
    if not path.is_file():
        raise Problem(f"{path}: no such file")
    specification = importlib.util.spec_from_file_location("recorded_script", path)
    if specification is None or specification.loader is None:
        raise Problem(f"{path} is no Python file", "its name ends in .py")
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # Triton looks for the source of kernels there
    sys.path.insert(0, str(path.resolve().parent))
    specification.loader.exec_module(module)
    step = getattr(module, "step", None)
    if not callable(step):
        raise Problem(f"{path} defines no step()", "a function without parameters that runs one step of inference")
    tensors = getattr(module, "tensors", {})
    if not isinstance(tensors, dict):
        raise Problem(f"{path}: \"tensors\" must be a dictionary of names and tensors")
    return Step(step, tensors)


# Recording ------------------------------------------------------------------------------------------------------------


def import_torch() -> None:
    global torch
    profile_gpu.import_torch()
    torch = profile_gpu.torch


def device_for(args: argparse.Namespace) -> Any:
    device = profile_gpu.device_here(args, profile_gpu.Fleet.here())
    if device.type == "cuda" and not torch.autograd.kineto_available():
        raise Problem(f"PyTorch {torch.__version__} was built without Kineto, which traces kernels",
                      "its own packages have it", 1)
    return device


def run_step(step: Step, device: Any) -> None:
    with torch.no_grad():
        step.run()
    if device.type == "cuda":
        torch.cuda.synchronize()


def observer_for(path: Path) -> Any:
    kind = getattr(torch.profiler, "ExecutionTraceObserver", None)
    kind = kind or getattr(torch.profiler, "ExecutionGraphObserver", None)  # its name before 2.0
    if kind is None:
        raise Problem(f"PyTorch {torch.__version__} has no observer of operators", "1.13 or newer has it", 1)
    observer = kind()
    observer.register_callback(str(path))
    return observer


def record_traces(step: Step, device: Any, folder: Path) -> None:
    """Profiler and observer start together: the operators of both have the same numbers."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
        with torch.profiler.profile(activities=activities):  # the first one takes time to set up
            run_step(step, device)
    observer = observer_for(folder / "execution.json")
    together = "execution_trace_observer" in inspect.signature(torch.profiler.profile.__init__).parameters
    options = {"execution_trace_observer": observer} if together else {}
    with torch.profiler.profile(activities=activities, record_shapes=True, **options) as profiler:
        if not together:
            observer.start()
        run_step(step, device)
        if not together:
            observer.stop()
    observer.unregister_callback()
    profiler.export_chrome_trace(str(folder / "kineto.json"))


def save(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def record_launches(step: Step, device: Any, log: LaunchLog, folder: Path) -> None:
    log.is_on = True
    run_step(step, device)
    log.is_on = False
    if not log.launches:
        raise Problem("the step launched no kernel of Triton", "leave --ptx out, or compile the model with --compile",
                      1)
    save(folder / "step.ptx", merged(log.modules))
    save(folder / "launches.jsonl", "".join(json.dumps(launch) + "\n" for launch in log.launches))
    save(folder / "entries.json", json.dumps(log.entries, indent=1) + "\n")
    note(f"{len(log.launches)} launches of {len(log.modules)} Triton kernels")


def kernels_in(path: Path) -> int:
    trace = json.loads(path.read_text(encoding="utf-8"))
    events = trace["traceEvents"] if isinstance(trace, dict) else trace  # a list from PyTorch without Kineto
    return sum(event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") for event in events)


def next_commands(folder: Path, kernels: int, ptx: bool) -> str:
    lines = []
    if kernels:
        lines.append(f"tangram kernels import {folder}/kineto.json {folder}/execution.json -o kernels.json")
    if ptx:
        lines.append(f"tangram kernels import {folder}/step.ptx --launch {folder}/launches.jsonl --gpu GPU,GPU "
                     "-o kernels.json")
    return "".join(line + "\n" for line in lines)


# The command line -----------------------------------------------------------------------------------------------------


class Parser(profile_gpu.Parser):
    examples = EXAMPLES


def arguments() -> argparse.Namespace:
    parser = Parser(prog="record_kernels.py", description=__doc__, epilog=ABOUT,
                    usage="record_kernels.py MODEL|--script FILE [options] -o FOLDER",
                    formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    add = parser.add_argument
    add("model", nargs="?", type=Path, metavar="MODEL", help="Hugging Face config.json, or the folder that holds it")
    add("--script", type=Path, metavar="FILE", help="a Python file that defines step(), instead of MODEL")
    add("-o", "--output", type=Path, metavar="FOLDER", help="where the recording goes")
    what = parser.add_argument_group("what MODEL runs")
    add = what.add_argument
    add("--phase", choices=["prefill", "decode"], default="decode", help="default decode")
    add("--requests", type=positive, default=1, metavar="N", help="requests of the step; default 1")
    add("--context", type=positive, default=1024, metavar="TOKENS", help="tokens that each request has; default 1024")
    add("--layers", type=positive, metavar="N", help="the first N layers alone")
    add("--dtype", choices=["bf16", "fp16", "fp32"], default="bf16", help="of the weights; default bf16")
    add("--compile", action="store_true", help="with torch.compile")
    how = parser.add_argument_group("how")
    add = how.add_argument
    add("--ptx", action="store_true", help="also the PTX and the launches of Triton kernels")
    add("--warmup", type=positive, default=3, metavar="N", help="steps before the recorded one; default 3")
    add("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: operators without kernels, to try a script")
    add("--dry-run", action="store_true", help="say what would be recorded")
    args = parser.parse_args()
    if (args.model is None) == (args.script is None):
        parser.error("give a model, or a script of your own with --script")
    if args.output is None and not args.dry_run:
        parser.error("-o FOLDER is missing: where the recording goes")
    return args


def plan_text(args: argparse.Namespace) -> str:
    if args.script is not None:
        what = f"step() of {args.script}"
    else:
        values = layers_of(args, read_config(args.model))
        layers = values.get("num_hidden_layers", values.get("n_layer", "all"))
        what = (f"{args.phase} of {args.model} ({values['model_type']}, {layers} layers, {args.dtype}), "
                f"{args.requests} {'request' if args.requests == 1 else 'requests'} of {args.context} tokens")
    files = ["kineto.json", "execution.json"] + ["step.ptx", "launches.jsonl", "entries.json"] * args.ptx
    return f"{what}\nafter {args.warmup} steps to warm up, on {args.device}: {', '.join(files)}\n"


def run(args: argparse.Namespace) -> int:
    if args.script is not None and not args.script.is_file():
        raise Problem(f"{args.script}: no such file")
    plan = plan_text(args)
    if args.dry_run:
        sys.stdout.write(plan)
        return 0
    import_torch()
    device = device_for(args)
    args.output.mkdir(parents=True, exist_ok=True)
    log = LaunchLog({})
    if args.ptx:
        watch_triton(log)
    with torch.no_grad():
        step = step_of_script(args.script) if args.script is not None else step_of_model(args, device)
    log.buffers = Buffers(step.tensors)
    for _ in range(args.warmup):
        run_step(step, device)
    record_traces(step, device, args.output)
    kernels = kernels_in(args.output / "kineto.json")
    note(f"{kernels} kernels and copies" if kernels else "no kernels: nothing ran on a GPU, the traces hold operators")
    if args.ptx:
        record_launches(step, device, log, args.output)
    sys.stdout.write(next_commands(args.output, kernels, args.ptx))
    return 0


if __name__ == "__main__":
    sys.exit(profile_gpu.exit_status(lambda: run(arguments())))
