"""A plan in real processes of this machine, over gloo and in fp64."""

import datetime
import os
import tempfile
import traceback

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

from plans import plan_from

TIMEOUT = 60  # seconds


def _rank_process(rank, record, folder, work, results):
    try:
        torch.set_num_threads(1)
        plan = plan_from(record)
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=len(plan.ranks),
                                timeout=datetime.timedelta(seconds=TIMEOUT))
        value = work(plan, rank, folder)
        if dist.get_world_size() > 1:
            dist.barrier()
        results.put((rank, value, None))
    except BaseException:
        results.put((rank, None, f"rank {rank}: {traceback.format_exc()}"))
    results.close()
    results.join_thread()
    os._exit(0)  # no thread of the backend is waited for


def alone(work, *arguments):
    """In a process of its own: autograd must not have run in one that forks."""
    process = multiprocessing.get_context("fork").Process(target=work, args=arguments)
    process.start()
    process.join()
    if process.exitcode != 0:
        raise RuntimeError(f"{work.__name__} failed")


def run_ranks(record, work, folder):
    """What work(plan, rank, folder) returns on each rank of a plan, in the order of ranks; RuntimeError with the
    traceback of the first rank that fails."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    world = len(record["ranks"])
    processes = [context.Process(target=_rank_process, args=(rank, record, folder, work, results))
                 for rank in range(world)]
    for process in processes:
        process.start()
    values = [None] * world
    try:
        for _ in processes:
            rank, values[rank], failure = results.get(timeout=2 * TIMEOUT)
            if failure is not None:
                raise RuntimeError(failure)
    except BaseException:
        for process in processes:
            process.terminate()
        raise
    finally:
        for process in processes:
            process.join()
        if os.path.exists(os.path.join(folder, "store")):
            os.unlink(os.path.join(folder, "store"))
    return values


def run_plan(record, work, prepare=None):
    """The same in a folder of its own, in which prepare(plan, folder) may leave something first."""
    with tempfile.TemporaryDirectory() as folder:
        if prepare is not None:
            alone(prepare, plan_from(record), folder)
        return run_ranks(record, work, folder)
