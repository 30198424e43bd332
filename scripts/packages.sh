# The Debian packages behind each thing one can do here. Sourced by scripts/setup.
# shellcheck shell=bash disable=SC2034

packages_build=(
  build-essential ccache cmake ninja-build
  libcli11-dev libeigen3-dev libexpat1-dev libexpected-dev libfmt-dev libhwloc-dev libspdlog-dev libsqlite3-dev libtbb-dev
  libxxhash-dev libyaml-cpp-dev nlohmann-json3-dev
)
# The tests also judge documents by their schemas, read job files, and start workers through mpirun and srun.
packages_test=(
  catch2 librapidcheck-dev python3 python3-jsonschema python3-yaml shellcheck
  munge openmpi-bin slurm-client slurmctld slurmd
)
packages_torch=(python3-torch) # 150 MB to load, 640 MB installed: for tests of profile_gpu.py, record_kernels.py
packages_bench=(libbenchmark-dev)
packages_clang=(clang-19 libclang-rt-19-dev)
packages_coverage=(gcovr)
packages_package=(dpkg-dev file) # what cpack asks for the libraries that a program is linked with
packages_lint=(clang-19 clang-format-19 clang-tidy-19 git shellcheck)
