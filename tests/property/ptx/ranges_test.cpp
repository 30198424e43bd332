// Bytes that random kernels touch, against what the analysis says of them.
#include "held_against.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"

namespace tangram::testing {
namespace {

TEST_CASE("no byte that a random kernel touches is outside of the analysis, and exact ranges are") {
  std::mt19937_64 random(2604);
  int ran = 0;
  int affine = 0;
  int exact = 0;
  const int count = cases(10'000);
  for (int i = 0; i < count; ++i) {
    const RandomKernel kernel = random_kernel(random);
    const Verdict verdict = held_against(kernel, kernel.text);
    INFO("kernel " << i << "\n"
                   << kernel.text << "grid " << kernel.launch.grid[0] << ", " << kernel.launch.grid[1] << ", block "
                   << kernel.launch.block[0] << ", " << kernel.launch.block[1] << ", n "
                   << std::get<std::int64_t>(kernel.launch.arguments[3]) << ", m "
                   << std::get<std::int64_t>(kernel.launch.arguments[4]));
    REQUIRE(verdict.difference == "");
    if (!verdict.ran) continue;
    ++ran;
    if (!kernel.is_affine) continue;
    ++affine;
    if (verdict.exact) ++exact;
  }
  INFO("ran " << ran << " of " << count << ", affine " << affine << ", exact " << exact);
  CHECK(ran * 10 >= count * 9);
  CHECK(exact * 10 >= affine * 9);
}

}  // namespace
}  // namespace tangram::testing
