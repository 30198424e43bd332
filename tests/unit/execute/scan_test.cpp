// Recurrences by chunks against the same token by token, and both against differences.
#include "scan.hpp"

#include <cmath>
#include <random>

#include "support/catch.hpp"
#include "tangram/base/at.hpp"

using namespace tangram;
using namespace tangram::execute;
using model::RecurrenceKind;

namespace {

class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) {}
  int whole(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  double real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
  Matrix matrix(int rows, int columns) {
    Matrix out(rows, columns);
    for (double& value : out.values()) value = real(-1, 1);
    return out;
  }

 private:
  std::mt19937 engine_;
};

HeadInputs random_inputs(Draw& draw) {
  const int positions = draw.whole(1, 12);
  const int key = draw.whole(1, 4);
  HeadInputs in{
      draw.matrix(positions, key), draw.matrix(positions, key), draw.matrix(positions, draw.whole(1, 4)), {}, {}};
  for (int t = 0; t < positions; ++t) {
    in.log_decay.push_back(draw.real(-2, 0));
    in.strength.push_back(draw.real(0, 1.5));
  }
  return in;
}

void check_near(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  CHECK(most < 1e-11);
}

RecurrenceKind any_kind(Draw& draw) {
  return draw.whole(0, 1) == 0 ? RecurrenceKind::kMamba2 : RecurrenceKind::kGatedDelta;
}

}  // namespace

TEST_CASE("scan: two tokens on paper") {
  // Keys 1 and 1, queries 1 and 2, values 3 and 5, the state halved between, strengths 1 and 0.5.
  const auto row = [](double a, double b) {
    Matrix out(2, 1);
    out.at(0, 0) = a;
    out.at(1, 0) = b;
    return out;
  };
  const HeadInputs in{row(1, 1), row(1, 2), row(3, 5), {0, std::log(0.5)}, {1, 0.5}};
  for (const int chunk : {0, 1, 2, 3}) {
    // States 3 and 1.5 + 0.5 * 5 = 4; of the delta rule 3 and 1.5 + 0.5 (5 - 1.5) = 3.25.
    const Matrix mamba = scan(RecurrenceKind::kMamba2, in, chunk);
    CHECK(mamba.at(0, 0) == Approx(3));
    CHECK(mamba.at(1, 0) == Approx(8));
    CHECK(scan(RecurrenceKind::kGatedDelta, in, chunk).at(1, 0) == Approx(6.5));
  }
}

TEST_CASE("scan: by chunks of any length it gives what it gives token by token") {
  Draw draw(1);
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    const HeadInputs in = random_inputs(draw);
    const RecurrenceKind kind = any_kind(draw);
    const int chunk = draw.whole(1, in.positions() + 1);
    check_near(stepwise_scan(kind, in).values(), chunked_scan(kind, in, chunk).values());
    const Matrix gradient = draw.matrix(in.positions(), in.value.columns());
    const HeadInputs steps = stepwise_scan_backward(kind, in, gradient);
    const HeadInputs chunks = chunked_scan_backward(kind, in, chunk, gradient);
    check_near(steps.key.values(), chunks.key.values());
    check_near(steps.query.values(), chunks.query.values());
    check_near(steps.value.values(), chunks.value.values());
    check_near(steps.log_decay, chunks.log_decay);
    check_near(steps.strength, chunks.strength);
  }
}

TEST_CASE("scan: gradients are slopes") {
  Draw draw(2);
  for (int round = 0; round < 100; ++round) {
    CAPTURE(round);
    HeadInputs in = random_inputs(draw);
    const RecurrenceKind kind = any_kind(draw);
    const Matrix gradient = draw.matrix(in.positions(), in.value.columns());
    const HeadInputs slopes = stepwise_scan_backward(kind, in, gradient);
    const auto loss = [&] {
      const Matrix out = stepwise_scan(kind, in);
      double sum = 0;
      for (std::size_t i = 0; i < out.values().size(); ++i) sum += out.values()[i] * gradient.values()[i];
      return sum;
    };
    const auto check_slope = [&](double& value, double slope) {
      constexpr double kStep = 1e-5;
      const double before = value;
      value = before + kStep;
      const double above = loss();
      value = before - kStep;
      const double below = loss();
      value = before;
      CHECK(std::abs((above - below) / (2 * kStep) - slope) < 1e-6);
    };
    const int t = draw.whole(0, in.positions() - 1);
    check_slope(in.key.at(t, 0), slopes.key.at(t, 0));
    check_slope(in.query.at(t, 0), slopes.query.at(t, 0));
    check_slope(in.value.at(t, 0), slopes.value.at(t, 0));
    check_slope(at(in.log_decay, t), at(slopes.log_decay, t));
    check_slope(at(in.strength, t), at(slopes.strength, t));
  }
}
