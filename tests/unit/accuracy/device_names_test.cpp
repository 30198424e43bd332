// Names of GPUs as publications print them, and the types of the catalogue they mean.
#include <string>
#include <utility>

#include "infer.hpp"
#include "support/catch.hpp"
#include "tangram/cluster/fleet.hpp"

using namespace tangram;
using namespace tangram::accuracy;

namespace {

std::string found(const std::string& published) {
  const cluster::GpuType* device = find_device(published, cluster::catalogue());
  return device == nullptr ? "" : device->name;
}

}  // namespace

TEST_CASE("published names find their GPU type") {
  const std::pair<const char*, const char*> names[] = {
      {"A100-80GB-SXM", "A100-80GB-SXM"},
      {"a100_40gb", "A100-40GB-SXM"},
      {"a100_80gb", "A100-80GB-SXM"},
      {"A100-80GB-PCIe", "A100-80GB-PCIe"},
      {"h100_80gb", "H100-80GB-SXM"},
      {"H100", "H100-80GB-SXM"},
      {"H100 NVL", "H100-94GB-NVL"},
      {"H100-96GB-HBM2e-500W", "H100-96GB-HBM2e"},
      {"4xGH-96", "GH200-96GB"},
      {"16xA100-40", "A100-40GB-SXM"},
      {"GH200-96GB", "GH200-96GB"},
      {"V100-16GB-SXM (p3.8xlarge)", "V100-16GB-SXM"},
      {"V100-32GB", "V100-32GB-SXM"},
      {"T4-16GB (g4dn.12xlarge)", "T4"},
      {"L4-24GB", "L4"},
      {"A10G-24GB", "A10G"},
      {"RTX 3090 24GB", "RTX-3090"},
      {"RTX 2080 Ti class", "RTX-2080-Ti"},
      {"RTX 6000 Ada", "RTX-6000-Ada"},
      {"Titan RTX 24GB", "Titan-RTX"},
      {"H200-141GB-SXM", "H200-141GB-SXM"},
      {"B200", "B200-180GB-SXM"},
      {"GB200", "GB200-186GB"},
      {"GB300", "GB300-288GB"},
      {"MI300X", "MI300X-192GB"},
      {"MI350X-288GB", "MI350X-288GB"},
      {"Ampere", "A100-80GB-SXM"},
  };
  for (const auto& [published, type] : names) {
    INFO(published);
    CHECK(found(published) == type);
  }
}

TEST_CASE("what names no product of the catalogue finds none") {
  for (const char* published : {"", "nonsense", "TPU-v4", "80GB", "SXM", "RTX", "RTX 6000", "RTX 2080", "A100-64GB",
                                "(A100-80GB-SXM)", "H10", "A1000", "x", "4x", "-", "Trainium2"}) {
    INFO(published);
    CHECK(found(published).empty());
  }
  CHECK(find_device("A100-80GB-SXM", {}) == nullptr);
}

TEST_CASE("every type of the catalogue finds itself") {
  for (const cluster::GpuType& device : cluster::catalogue()) {
    INFO(device.name);
    CHECK(found(device.name) == device.name);
  }
}
