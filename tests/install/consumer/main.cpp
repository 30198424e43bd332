// Reads a fleet and says how many GPUs it has.
#include <cstdio>
#include <tangram/cluster/fleet.hpp>
#include <tangram/io/file.hpp>

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  const auto text = tangram::io::read_file(argv[1]);
  if (!text) return 4;
  const auto fleet = tangram::cluster::read_fleet(*text, argv[1]);
  if (!fleet) return 4;
  std::printf("%lld GPUs, %zu types known\n", static_cast<long long>(fleet->gpu_count()),
              tangram::cluster::catalogue().size());
  return 0;
}
