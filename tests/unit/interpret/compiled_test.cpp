// Kernels that clang compiled, against the same arithmetic on the CPU: equal to the bit.
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "machine.hpp"
#include "support/random.hpp"

namespace tangram::testing {
namespace {

std::string compiled_kernels() {
  std::ifstream file(TANGRAM_SOURCE_DIR "/tests/data/ptx/kernels.ptx");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<float> random_floats(std::mt19937_64& random, int count) {
  std::vector<float> result;
  for (int i = 0; i < count; ++i) result.push_back(static_cast<float>(pick(random, -4000, 4000)) / 256.0F);
  return result;
}

std::vector<std::uint32_t> random_words(std::mt19937_64& random, int count) {
  std::vector<std::uint32_t> result;
  for (int i = 0; i < count; ++i) {
    const int bits = pick(random, 1, 32);  // small numbers, too
    result.push_back(static_cast<std::uint32_t>(random()) >> (32 - bits));
  }
  return result;
}

template <class Number>
void check_same(const std::vector<Number>& found, const std::vector<Number>& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO(i << ": " << found[i] << ", wanted " << wanted[i]);
    CHECK(std::memcmp(&found[i], &wanted[i], sizeof(Number)) == 0);
  }
}

TEST_CASE("integers of all kinds are those of the CPU") {
  std::mt19937_64 random(1);
  constexpr int kCount = 512;
  const auto a = random_words(random, kCount);
  const auto b = random_words(random, kCount);
  std::vector<std::uint32_t> out;
  std::vector<std::int64_t> wide;
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::uint32_t x = a[i];
    const std::uint32_t y = b[i] | 1;
    const auto s = static_cast<std::int32_t>(x);
    const auto t = static_cast<std::int32_t>(y);
    std::uint32_t h = x + y * 31;
    h ^= x / y + x % y * 7;
    h ^= static_cast<std::uint32_t>(s / 13) ^ static_cast<std::uint32_t>(s % 13);
    h += static_cast<std::uint32_t>(std::popcount(x) + std::countl_zero(y) + std::countr_zero(y));
    h ^= x << (y & 31) | x >> (y & 15);
    h ^= static_cast<std::uint32_t>(s >> (y & 31));
    h += s < t ? 5U : 9U;
    h ^= static_cast<std::uint32_t>(static_cast<std::uint8_t>(x) * static_cast<std::int8_t>(y));
    out.push_back(std::rotl(h, 13));
    const std::uint64_t product = std::uint64_t{x} * y >> 7;
    wide.push_back(std::int64_t{s} * t + static_cast<std::int64_t>(product));
  }
  Machine machine(compiled_kernels());
  const auto to = machine.buffer(std::vector<std::uint32_t>(kCount));
  const auto to_wide = machine.buffer(std::vector<std::int64_t>(kCount));
  machine.run("integers", 8, 64, machine.buffer(a), machine.buffer(b), to, to_wide);
  check_same(machine.numbers<std::uint32_t>(to), out);
  check_same(machine.numbers<std::int64_t>(to_wide), wide);
}

TEST_CASE("floats are those of the CPU without contraction") {
  std::mt19937_64 random(2);
  constexpr int kCount = 512;
  const auto a = random_floats(random, kCount);
  const auto b = random_floats(random, kCount);
  std::vector<float> out;
  std::vector<std::int32_t> rounded;
  for (std::size_t i = 0; i < kCount; ++i) {
    const float x = a[i];
    const float y = b[i];
    float r = x * y + (x - y) / (y * y + 1.0F);
    r += std::sqrt(x * x + 0.5F);
    r = std::fma(r, x, y);
    r = std::fmax(r, x) - std::fmin(r, y) + std::fabs(x);
    if (x < y) r = -r;
    out.push_back(r);
    rounded.push_back(static_cast<std::int32_t>(x * 100.0F) + static_cast<std::int32_t>(std::floor(y)) +
                      static_cast<std::int32_t>(static_cast<std::uint32_t>(x * x)));
  }
  Machine machine(compiled_kernels());
  const auto to = machine.buffer(std::vector<float>(kCount));
  const auto to_rounded = machine.buffer(std::vector<std::int32_t>(kCount));
  machine.run("floats", 8, 64, machine.buffer(a), machine.buffer(b), to, to_rounded);
  check_same(machine.numbers<float>(to), out);
  check_same(machine.numbers<std::int32_t>(to_rounded), rounded);
}

TEST_CASE("a product by tiles in shared memory is that of three loops") {
  std::mt19937_64 random(3);
  constexpr int kM = 32;
  constexpr int kN = 48;
  constexpr int kK = 64;
  const auto a = random_floats(random, kM * kK);
  const auto b = random_floats(random, kK * kN);
  std::vector<float> c;
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < kN; ++column) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) {
        sum += a[static_cast<std::size_t>(row * kK + k)] * b[static_cast<std::size_t>(k * kN + column)];
      }
      c.push_back(sum);
    }
  }
  Machine machine(compiled_kernels());
  const auto to = machine.buffer(std::vector<float>(kM * kN));
  machine.run("matmul", kM / 16 * (kN / 16), 256, machine.buffer(a), machine.buffer(b), to, kM, kN, kK);
  check_same(machine.numbers<float>(to), c);
}

TEST_CASE("a norm by a tree of sums over barriers is the same tree on the CPU") {
  std::mt19937_64 random(4);
  constexpr int kRows = 3;
  constexpr int kWidth = 200;
  constexpr int kThreads = 64;
  const float epsilon = 1e-5F;
  const auto x = random_floats(random, kRows * kWidth);
  const auto weight = random_floats(random, kWidth);
  std::vector<float> y;
  for (int row = 0; row < kRows; ++row) {
    const float* values = x.data() + row * kWidth;
    std::vector<float> partial(kThreads);
    for (std::size_t t = 0; t < kThreads; ++t) {
      for (std::size_t i = t; i < kWidth; i += kThreads) partial[t] += values[i] * values[i];
    }
    for (std::size_t half = kThreads / 2; half > 0; half /= 2) {
      for (std::size_t t = 0; t < half; ++t) partial[t] += partial[t + half];
    }
    const float scale = 1.0F / std::sqrt(partial[0] / static_cast<float>(kWidth) + epsilon);
    for (std::size_t i = 0; i < kWidth; ++i) y.push_back(values[i] * scale * weight[i]);
  }
  Machine machine(compiled_kernels());
  const auto to = machine.buffer(std::vector<float>(kRows * kWidth));
  machine.run("rms_norm", kRows, kThreads, machine.buffer(x), machine.buffer(weight), to, kWidth, epsilon);
  check_same(machine.numbers<float>(to), y);
}

TEST_CASE("gathers, pages and histograms go where the data says") {
  Machine machine(compiled_kernels());
  const auto counts = machine.buffer(std::vector<std::int32_t>(4));
  machine.run("histogram", 2, 8, machine.buffer(std::vector<std::int32_t>{0, 1, 2, 3, 3, 3, 7, 1, 0, 9}), counts, 10,
              3);
  check_same(machine.numbers<std::int32_t>(counts), std::vector<std::int32_t>{2, 3, 1, 4});
  const auto rows = machine.buffer(std::vector<float>(4));
  machine.run("gather", 2, 2, machine.buffer(std::vector<float>{1, 2, 3, 4, 5, 6}),
              machine.buffer(std::vector<std::int32_t>{2, 0}), rows, 2);
  check_same(machine.numbers<float>(rows), std::vector<float>{5, 6, 1, 2});
  const auto grouped = machine.buffer(std::vector<float>(4));
  const auto first = machine.buffer(std::vector<float>{1, 2});
  const auto second = machine.buffer(std::vector<float>{3, 4});
  machine.run("grouped", 2, 4, machine.buffer(std::vector<std::uint64_t>{second, first}), grouped, 2);
  check_same(machine.numbers<float>(grouped), std::vector<float>{3, 4, 1, 2});
}

}  // namespace
}  // namespace tangram::testing
