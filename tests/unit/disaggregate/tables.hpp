// Measured kernels of published tables (tests/data/disaggregate) as problems.
#pragma once

#include <string>
#include <vector>

#include "tangram/disaggregate/problem.hpp"

namespace tangram::tests {

struct ModelCase {
  std::string model = "llama8b";
  std::string phase = "decode";
  int requests = 32;  ///< of one micro-batch
  int context = 2048;
  std::vector<std::string> gpus = {"a100_sxm", "l40s"};
  std::vector<double> memory = {};  ///< bytes by GPU; empty: no limit
  disaggregate::Link link = {};     ///< between any two
  int in_flight = 1'000'000;
  bool head = false;  ///< the last two kernels: vocabulary and sampling
  int layers = 0;     ///< 0: as many as the model has
};

/// 25 GB/s, 5 us a message, 2 us of each GPU: InfiniBand with GPU-initiated messages.
inline constexpr disaggregate::Link kInfiniBand{25e9, 5e-6, 2e-6};

/// The layers of `layers.csv`, one after the other, with the residual stream as a message of its own.
[[nodiscard]] disaggregate::Problem model_problem(const ModelCase& of);

/// Seconds of all kernels on one GPU of each class.
[[nodiscard]] std::vector<double> seconds_on_each(const disaggregate::Problem& problem);

/// 1 over the sum of the rates of all GPUs, each with the whole model.
[[nodiscard]] double replica_period(const disaggregate::Problem& problem);

/// The kernels of `gptoss20b_census.csv`, those of one name, phase and block together, on an A100 and an L40S; no
/// messages.
[[nodiscard]] disaggregate::Problem census_problem();

/// Two hundred equal layers of ten kernels, at random, on 16 GPUs of four classes.
[[nodiscard]] disaggregate::Problem many_kernels();

/// Rows of a comma-separated file of tests/data/disaggregate by the names of its columns; lines with # are left out.
class Table {
 public:
  explicit Table(const std::string& file);
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] const std::string& text(std::size_t row, const std::string& column) const;
  [[nodiscard]] double number(std::size_t row, const std::string& column) const;

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tangram::tests
