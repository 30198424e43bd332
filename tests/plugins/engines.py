"""Engines for workers on other machines, as the tests have them: each is the options of `tangram plan` that use it, or why it
cannot be tried here.

    stand-in   a script in the place of srun: tasks on this host, options and exit as srun has them
    mpi        Open MPI's mpirun on this host
    slurm      a Slurm of two nodes on this host, started for the test
"""
import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import slurm_cluster

HERE = Path(__file__).resolve().parent


class Missing(Exception):
    """Why an engine cannot be tried here."""


@contextlib.contextmanager
def stand_in(cores):
    yield ["--workers", "slurm", "--worker-launcher", f"{HERE / 'fake_srun.py'}", "--worker-cores", str(cores)]


@contextlib.contextmanager
def mpi(cores):
    if shutil.which("mpirun") is None:
        raise Missing("there is no mpirun (Debian: openmpi-bin)")
    if os.getuid() == 0:  # mpirun asks for both before it runs as root
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    yield ["--workers", "mpi", "--worker-launcher", "mpirun --oversubscribe", "--worker-cores", str(cores)]


@contextlib.contextmanager
def slurm(cores):
    why = slurm_cluster.missing()
    if why:
        raise Missing(why)
    with tempfile.TemporaryDirectory(prefix="tangram-slurm-") as folder:
        with slurm_cluster.running(Path(folder), cores) as configuration:
            os.environ["SLURM_CONF"] = str(configuration)
            yield ["--workers", "slurm", "--worker-launcher", "srun --nodes=2", "--worker-cores", str(cores)]


@contextlib.contextmanager
def local(cores):
    yield ["-j", str(cores)]


ENGINES = {"local": local, "stand-in": stand_in, "mpi": mpi, "slurm": slurm}


def skip(why):
    """ctest calls 77 skipped."""
    print(f"skipped: {why}")
    sys.exit(77)
