#include "tables.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::tests {

namespace {

using namespace disaggregate;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

Block block_of(const std::string& name) {
  if (name == "attention") return Block::kAttention;
  return name == "ffn" ? Block::kFeedForward : Block::kOther;
}

// Bytes of keys and values of one token and layer, bf16 and 8 heads of 128 in both models.
constexpr double kCacheBytes = 2 * 8 * 128 * 2;

// Log-log interpolation of GEMM with every point left out once: 5 to 8 % in the mean on five of six GPUs.
constexpr double kInterpolated = 0.06;

class ModelProblem {
 public:
  explicit ModelProblem(const ModelCase& of) : of_(of), table_("layers.csv") {
    for (std::size_t c = 0; c < of.gpus.size(); ++c) {
      GpuClass& added = problem_.classes.emplace_back();
      added.name = of.gpus[c];
      if (!of.memory.empty()) added.memory = of.memory[c];
    }
    problem_.links = {of.gpus.size(), of.gpus.size(), of.link};
    problem_.phases.push_back({of.phase, 1, of.in_flight});
    find_rows();
  }

  Problem build() && {
    const int layers = of_.layers > 0 ? of_.layers : of_.model == "llama8b" ? 32 : 64;
    for (int layer = 0; layer < layers; ++layer) add_layer(layer);
    problem_.repeats.push_back({0, 9, layers});
    if (of_.head) add_head(layers);
    return std::move(problem_);
  }

 private:
  void find_rows() {
    for (std::size_t row = 0; row < table_.size(); ++row) {
      const bool is_it = table_.text(row, "model") == of_.model && table_.text(row, "phase") == of_.phase &&
                         table_.number(row, "requests") == of_.requests && table_.number(row, "context") == of_.context;
      if (is_it) row_.emplace(table_.text(row, "kernel"), row);
    }
    if (row_.empty()) throw std::runtime_error("no such case in layers.csv");
  }

  int add_kernel(const std::string& name, int layer) {
    const std::size_t row = row_.at(name);
    Kernel& kernel = problem_.kernels.emplace_back();
    kernel.name = name;
    kernel.layer = layer;
    kernel.block = block_of(table_.text(row, "block"));
    kernel.error = kInterpolated;
    for (const std::string& gpu : of_.gpus) kernel.seconds.push_back(table_.number(row, gpu) * 1e-6);
    const int number = problem_.kernel_count() - 1;
    hold(BufferKind::kWeight, table_.number(row, "weight_bytes"), number);
    return number;
  }

  void hold(BufferKind kind, double bytes, int reader) {
    if (bytes <= 0) return;
    Buffer held;
    held.kind = kind;
    held.bytes = bytes;
    held.readers = {reader};
    problem_.buffers.push_back(held);
  }

  void send(int writer, int reader, double bytes) {
    Buffer message;
    message.writer = writer;
    message.bytes = bytes;
    message.readers = {reader};
    problem_.buffers.push_back(message);
  }

  [[nodiscard]] double bytes_of(const std::string& kernel) const { return table_.number(row_.at(kernel), "bytes"); }

  void add_layer(int layer) {
    static const std::vector<std::string> kNames = {"norm1", "qkv",     "rope_kv",  "attn", "o_proj",
                                                    "norm2", "gate_up", "silu_mul", "down"};
    const int first = problem_.kernel_count();
    for (const std::string& name : kNames) add_kernel(name, layer);
    for (int i = 0; i + 1 < 9; ++i) send(first + i, first + i + 1, bytes_of(at(kNames, i)));
    send(first, first + 5, bytes_of("norm1"));
    if (layer > 0) {
      send(first - 1, first, bytes_of("down"));
      send(first - 4, first, bytes_of("norm1"));
    }
    hold(BufferKind::kCache, kCacheBytes * of_.requests * of_.context, first + 3);
  }

  void add_head(int layers) {
    const int last = problem_.kernel_count() - 1;
    const int head = add_kernel("lm_head", layers);
    const int sample = add_kernel("sample", layers);
    send(last, head, bytes_of("down"));
    send(last - 3, head, bytes_of("norm1"));
    send(head, sample, bytes_of("lm_head"));
  }

  const ModelCase& of_;
  Table table_;
  std::map<std::string, std::size_t> row_;  // by kernel
  Problem problem_;
};

}  // namespace

Table::Table(const std::string& file) {
  std::ifstream stream(std::string(TANGRAM_SOURCE_DIR) + "/tests/data/disaggregate/" + file);
  if (!stream) throw std::runtime_error("cannot read " + file);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with('#')) continue;
    if (columns_.empty()) {
      columns_ = cells_of(line);
    } else {
      rows_.push_back(cells_of(line));
    }
  }
}

const std::string& Table::text(std::size_t row, const std::string& column) const {
  const auto place = std::ranges::find(columns_, column) - columns_.begin();
  return at(rows_.at(row), place);
}

double Table::number(std::size_t row, const std::string& column) const { return std::stod(text(row, column)); }

Problem model_problem(const ModelCase& of) { return ModelProblem(of).build(); }

std::vector<double> seconds_on_each(const Problem& problem) {
  std::vector<double> seconds(problem.classes.size(), 0);
  for (const Kernel& kernel : problem.kernels) {
    const double passes = at(problem.phases, kernel.phase).passes;
    for (std::size_t c = 0; c < seconds.size(); ++c) seconds[c] += passes * kernel.seconds[c];
  }
  return seconds;
}

double replica_period(const Problem& problem) {
  const std::vector<double> seconds = seconds_on_each(problem);
  double rate = 0;
  for (std::size_t c = 0; c < seconds.size(); ++c) rate += problem.classes[c].count / seconds[c];
  return 1 / rate;
}

Problem census_problem() {
  const Table table("gptoss20b_census.csv");
  Problem problem;
  problem.classes.resize(2);
  problem.classes[0].name = "A100";
  problem.classes[1].name = "L40S";
  problem.links = {2, 2};
  problem.phases = {{"prefill", 1, 1'000'000}, {"decode", 1, 1'000'000}};
  std::map<std::tuple<int, Block, std::string>, Kernel> kernels;
  for (std::size_t row = 0; row < table.size(); ++row) {
    const int phase = table.text(row, "phase") == "prefill" ? 0 : 1;
    const Block block = block_of(table.text(row, "block"));
    Kernel& kernel = kernels[{phase, block, table.text(row, "kernel")}];
    kernel.name = table.text(row, "kernel");
    kernel.phase = phase;
    kernel.block = block;
    kernel.seconds.resize(2, 0);
    const double seconds = table.number(row, "launches") * table.number(row, "a100_us") * 1e-6;
    kernel.seconds[0] += seconds;
    kernel.seconds[1] += seconds * table.number(row, "ratio");
  }
  for (auto& [key, kernel] : kernels) problem.kernels.push_back(std::move(kernel));
  return problem;
}

Problem many_kernels() {
  std::mt19937_64 random(4);
  const auto between = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  Problem problem;
  problem.classes.resize(4);
  problem.classes[0].count = 8;
  problem.classes[1].count = 4;
  problem.classes[2].count = 2;
  problem.classes[3].count = 2;
  problem.links = {4, 4, {50e9, 4e-6, 1e-6}};
  problem.phases.push_back({"decode", 1, 1'000'000});
  std::vector<std::vector<double>> layer;
  for (int i = 0; i < 10; ++i) {
    const double work = between(5e-6, 80e-6);
    layer.emplace_back();
    for (const double speed : {1.0, 0.8, 0.5, 0.3}) layer.back().push_back(work / speed * between(0.5, 1.5));
  }
  for (int k = 0; k < 2000; ++k) {
    disaggregate::Kernel kernel;
    kernel.layer = k / 10;
    kernel.seconds = at(layer, k % 10);
    problem.kernels.push_back(kernel);
    if (k == 0) continue;
    disaggregate::Buffer message;
    message.bytes = 262'144;
    message.writer = k - 1;
    message.readers = {k};
    if (k % 10 == 1 && k + 4 < 2000) message.readers.push_back(k + 4);
    problem.buffers.push_back(message);
  }
  problem.repeats.push_back({0, 10, 200});
  return problem;
}

}  // namespace tangram::tests
