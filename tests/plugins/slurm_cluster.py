"""A Slurm of two nodes on this host: munged, slurmctld and two slurmd, with ports, keys and folders of their own.

    slurm_cluster.py COMMAND...     runs a command in it
"""
import contextlib
import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from ports import reserved_ports

PROGRAMS = {"srun": "slurm-client", "slurmctld": "slurmctld", "slurmd": "slurmd", "munged": "munge"}
PATH = os.pathsep.join([os.environ["PATH"], "/usr/local/sbin", "/usr/sbin", "/sbin"])

CONFIGURATION = """\
ClusterName=tangram
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={each}
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs={each}
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


def find(program):
    return shutil.which(program, path=PATH)


def missing():
    """Why there can be none here; empty: it can be tried."""
    packages = [package for program, package in PROGRAMS.items() if find(program) is None]
    return f"there is no Slurm (Debian: {' '.join(packages)})" if packages else ""


def version():
    said = subprocess.run([find("slurmctld"), "-V"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in re.search(r"(\d+)\.(\d+)", said).groups())


def wait_until(condition, what, log, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"{what} in {seconds} s; the log ends: {log.read_text()[-2000:] if log.exists() else ''}")
        time.sleep(0.1)


@contextlib.contextmanager
def running(folder, cores):
    """Yields slurm.conf; the nodes claim `cores` together, whatever the host has."""
    with reserved_ports(3) as ports:
        configuration = configured(folder, cores, ports)
        with daemons(folder, configuration):
            yield configuration


def configured(folder, cores, ports):
    (folder / "state").mkdir()
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o400)
    folder.chmod(0o755)
    configuration = folder / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(host=socket.gethostname(), user=getpass.getuser(), folder=folder,
                                                  ports=ports, each=(cores + 1) // 2))
    if version() >= (23, 11):  # slurmd may do without control groups since then, and would look for them otherwise
        (folder / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
    return configuration


@contextlib.contextmanager
def daemons(folder, configuration):
    log = folder / "log"
    started = []

    def start(program, *arguments):
        with log.open("ab") as sink:
            started.append(subprocess.Popen([find(program), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=sink,
                                            stderr=sink, env={**os.environ, "SLURM_CONF": str(configuration)}))

    def nodes_idle():
        listed = subprocess.run([find("sinfo"), "-h", "-o", "%D %t"], capture_output=True, text=True, check=False,
                                env={**os.environ, "SLURM_CONF": str(configuration)})
        return listed.stdout.strip() == "2 idle"

    try:
        start("munged", "--foreground", "--force", f"--key-file={folder}/munge.key", f"--socket={folder}/munge.socket",
              f"--pid-file={folder}/munge.pid", f"--seed-file={folder}/munge.seed", f"--log-file={folder}/munge.log")
        wait_until((folder / "munge.socket").exists, "no munge socket", log)
        start("slurmctld", "-D", "-f", configuration)
        for node in ("n1", "n2"):
            start("slurmd", "-D", "-N", node, "-f", configuration)
        wait_until(nodes_idle, "the nodes are not idle", log)
        yield
    finally:
        for daemon in reversed(started):
            daemon.send_signal(signal.SIGTERM)
        for daemon in started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(timeout=10)
            if daemon.poll() is None:
                daemon.kill()
                daemon.wait()


def main():
    if missing():
        sys.exit(missing())
    with tempfile.TemporaryDirectory(prefix="tangram-slurm-") as folder:
        with running(Path(folder), 8) as configuration:
            done = subprocess.run(sys.argv[1:], env={**os.environ, "SLURM_CONF": str(configuration)}, check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
