// Where the kernels of one inference application run, in plain numbers. Goes in: seconds of each kernel on each class
// of GPUs, the buffers they read and write, links, memory. Comes out: problems for solve.hpp, placements as they
// answer. Knows nothing of models or traces, so that it can be tested against a brute force.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/base/grid.hpp"

namespace tangram::disaggregate {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// GPUs that are alike. They serve micro-batches in turn, each holds the weights of all kernels placed on its class.
struct GpuClass {
  std::string name;
  int count = 1;
  double memory = kNever;  ///< bytes of one GPU that weights, caches and messages may fill
};

/// From one class to another, one direction.
struct Link {
  double bytes_per_second = kNever;
  double seconds_per_message = 0;  ///< the link is taken so much longer than by the bytes alone
  double gpu_seconds = 0;          ///< of the sender, and again of the receiver, for each message
  int lanes = 1;                   ///< links that are alike, used in turn

  [[nodiscard]] double seconds(double bytes) const { return seconds_per_message + bytes / bytes_per_second; }
};

/// Passes through the model that are alike: of prefill, of decode.
struct Phase {
  std::string name;
  double passes = 1;  ///< in one round; the period is that of rounds
  int in_flight = 1;  ///< micro-batches of it that are under way at the same time
};

/// What a split by kind of block tells apart.
enum class Block : std::uint8_t { kAttention, kFeedForward, kOther };

/// One kernel of a pass. Kernels stand in the order in which their stream was recorded.
struct Kernel {
  std::string name;
  int phase = 0;
  int layer = 0;
  Block block = Block::kOther;
  std::vector<double> seconds;  ///< on one GPU of each class; kNever: does not run there
  double error = 0;             ///< of `seconds`: relative, absolute value in the mean
};

enum class BufferKind : std::uint8_t {
  kMessage,  ///< one version of an activation: sent once to every other class that reads it
  kWeight,   ///< whole on every GPU of a class with a reader
  kCache,    ///< of each micro-batch in flight, on a GPU of every class with a reader
};

struct Buffer {
  BufferKind kind = BufferKind::kMessage;
  double bytes = 0;
  int writer = -1;           ///< of a message: before all readers. -1: weights and caches have none
  std::vector<int> readers;  ///< ascending
  double messages = 0;       ///< in one round; 0: one for each pass of the writer's phase
};

/// `times` equal layers of `kernels` kernels each, one after the other.
struct Repeat {
  int first = 0;
  int kernels = 0;
  int times = 0;
};

struct Problem {
  std::vector<GpuClass> classes;
  Grid<Link> links;  ///< by sending class and receiving class
  std::vector<Phase> phases;
  std::vector<Kernel> kernels;
  std::vector<Buffer> buffers;
  std::vector<Repeat> repeats;

  [[nodiscard]] int class_count() const { return static_cast<int>(classes.size()); }
  [[nodiscard]] int kernel_count() const { return static_cast<int>(kernels.size()); }
  [[nodiscard]] double messages_of(const Buffer& buffer) const;
  /// Whether writer and readers belong to one pass, so that its latency and activations count it.
  [[nodiscard]] bool is_within_pass(const Buffer& buffer) const;
};

/// The problem with so many micro-batches of every phase under way.
[[nodiscard]] Problem with_in_flight(Problem problem, int in_flight);

/// The class of each kernel.
using Placement = std::vector<int>;

/// What a problem must have so that everything else may take it as it is: at least one class, phase and kernel, a class
/// for every kernel, numbers that are not negative, buffers whose kernels exist and are in order, repeats within the
/// kernels. Errors name the element ("/kernels/3/seconds") and what was expected.
[[nodiscard]] Expected<void> check(const Problem& problem);

}  // namespace tangram::disaggregate
