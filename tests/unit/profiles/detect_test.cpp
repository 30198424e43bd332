// Each detection by itself: what it finds, and what it leaves alone.
#include "tangram/profiles/detect.hpp"

#include <cmath>
#include <limits>

#include "support/catch.hpp"

namespace tangram::profiles {
namespace {

using Indices = std::vector<std::size_t>;

TEST_CASE("a time is in the unit that the device can compute in") {
  // 1 TFLOP on 100 TFLOP/s takes 10 ms or more, and 10 s or less.
  const auto unit = [](double time, const Unit& declared) { return time_unit(1e12, 100e12, time, declared); };
  CHECK(unit(0.02, kSeconds) == kSeconds);
  CHECK(unit(20, kSeconds) == kMilliseconds);  // 20 s would be 0.05 % of the peak
  CHECK(unit(20'000, kSeconds) == kMicroseconds);
  CHECK(unit(20, kMilliseconds) == kMilliseconds);
  CHECK(unit(0.02, kMilliseconds) == kSeconds);  // 0.02 ms would be 500 times the peak
  CHECK(unit(20'000, kMilliseconds) == kMicroseconds);
  CHECK(unit(0.02, kMicroseconds) == kSeconds);
  CHECK_FALSE(unit(1e-9, kSeconds));
  CHECK_FALSE(unit(1e12, kSeconds));
  // Boost clocks: 25 % above the datasheet are believed.
  CHECK(unit(0.0081, kSeconds) == kSeconds);
}

TEST_CASE("sentinels are no times") {
  CHECK(is_sentinel(1e9));
  CHECK(is_sentinel(1073741824.0));
  CHECK(is_sentinel(std::numeric_limits<double>::infinity()));
  CHECK(is_sentinel(std::nan("")));
  CHECK_FALSE(is_sentinel(390'000));
}

TEST_CASE("a time beyond what its neighbours allow is an outlier") {
  // One sample cannot take longer than two.
  CHECK(outliers(std::vector<Sample>{{1, 390}, {2, 36}, {4, 70}}) == Indices{0});
  CHECK(outliers(std::vector<Sample>{{1, 390}, {2, 36}}) == Indices{0});
  CHECK(outliers(std::vector<Sample>{{1, 18}, {2, 360}, {4, 70}, {8, 140}}) == Indices{1});
  CHECK(outliers(std::vector<Sample>{{1, 18}, {2, 36}, {4, 700}}) == Indices{2});
  // A time too short is one as well: eight samples in less than one.
  CHECK(outliers(std::vector<Sample>{{1, 18}, {2, 36}, {4, 70}, {8, 2}}) == Indices{3});
  CHECK(outliers(std::vector<Sample>{{1, 390}, {2, 36}, {4, 900}, {8, 140}, {16, 280}}) == Indices{0, 2});
}

TEST_CASE("launch-bound, proportional and noisy times are no outliers") {
  CHECK(outliers(std::vector<Sample>{{1, 18}, {2, 18}, {4, 19}, {8, 30}}).empty());
  CHECK(outliers(std::vector<Sample>{{1, 18}, {2, 36}, {4, 72}, {8, 144}}).empty());
  CHECK(outliers(std::vector<Sample>{{1, 20}, {2, 15}, {4, 40}}).empty());  // within 42 %
  CHECK(outliers(std::vector<Sample>{{1, 20}}).empty());
  CHECK(outliers({}).empty());
}

TEST_CASE("equal layers that stand out from their median") {
  CHECK(outliers_of_equals(std::vector<double>{29.5, 29.6, 390, 29.4, 29.5}) == Indices{2});
  CHECK(outliers_of_equals(std::vector<double>{29.5, 29.6, 31, 29.4, 29.5}).empty());
}

TEST_CASE("a backward without the gradient of the weights") {
  // 10 TFLOP in 100 ms are 100 of 312 TFLOP/s.
  CHECK(lacks_weight_gradient(10e12, 0.1, 0.091, 312e12));  // as measured: 0.8 to 0.98 of forward
  CHECK_FALSE(lacks_weight_gradient(10e12, 0.1, 0.196, 312e12));
  // Above the peak, whatever the ratio: 2 x 10 TFLOP in 45 ms are 444 TFLOP/s.
  CHECK(lacks_weight_gradient(10e12, 0.03, 0.045, 312e12));
  // Launches decide at 3 % of the peak: no ratio says anything.
  CHECK_FALSE(lacks_weight_gradient(1e12, 0.1, 0.09, 312e12));
}

TEST_CASE("memory that is an exact line was computed") {
  CHECK(is_computed(std::vector<Sample>{{1, 584.26953125}, {2, 928.26953125}, {4, 1616.26953125}}));
  CHECK_FALSE(is_computed(std::vector<Sample>{{1, 4146}, {2, 4838.5}, {4, 6259}}));
  CHECK_FALSE(is_computed(std::vector<Sample>{{1, 584}, {2, 928}}));  // two points are always on a line
}

TEST_CASE("the unit of a size that is known") {
  const double bytes = 12'596'224.0 * 4;
  CHECK(size_unit(48.05, bytes, 4)->name == "MiB");
  CHECK(size_unit(50.385, bytes, 4)->name == "MB");
  CHECK(size_unit(bytes, bytes, 4)->name == "bytes");
  CHECK(size_unit(12'596'224, bytes, 4)->name == "elements");
  CHECK(size_unit(40, 40.0 * (1 << 30), 4)->name == "GiB");
  CHECK(size_unit(40, 40e9, 4)->name == "GB");  // 7.4 % apart
  CHECK_FALSE(size_unit(30, bytes, 4));
}

TEST_CASE("the unit of a rate that was seen") {
  // 5 GB/s
  CHECK(rate_unit(5, 5e9, 4)->name == "GB/s");
  CHECK(rate_unit(4.657, 5e9, 4)->name == "GiB/s");
  CHECK(rate_unit(5e9, 5e9, 4)->name == "bytes/s");
  CHECK(rate_unit(40, 5e9, 4)->name == "Gbit/s");
  CHECK(rate_unit(1.25e9, 5e9, 4)->name == "elements/s");
  CHECK(rate_unit(1.25, 5e9, 4)->name == "Gelements/s");
  CHECK_FALSE(rate_unit(3, 5e9, 4));
}

TEST_CASE("the unit of a bandwidth on a link") {
  // NVLink of 300 GB/s.
  CHECK(bandwidth_unit(230, 300e9)->name == "GB/s");
  CHECK(bandwidth_unit(230e9, 300e9)->name == "bytes/s");
  CHECK(bandwidth_unit(1840, 300e9)->name == "Gbit/s");
  CHECK_FALSE(bandwidth_unit(1e-6, 300e9));
}

TEST_CASE("medians") {
  CHECK(median({}) == 0);
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2.5);
}

}  // namespace
}  // namespace tangram::profiles
