// A placed inference step as GPUs run it: which kernels each launches on which stream, what they wait for, which bytes
// are copied. Made of a placement (lower.hpp) or read from a file (document.hpp); simulated (timeline.hpp), and run on
// emulated devices (emulate.hpp), which holds it against the kernel graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tangram::dispatch {

/// GPUs of one type: each micro-batch keeps to one of them.
struct Device {
  std::string name;
  int count = 1;

  bool operator==(const Device&) const = default;
};

/// Passes that are alike.
struct Phase {
  std::string name;
  double passes = 1;  ///< in one round
  int in_flight = 1;  ///< micro-batches under way; each has buffers of its own, but for the weights

  bool operator==(const Phase&) const = default;
};

struct ByteRange {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;

  bool operator==(const ByteRange&) const = default;
};

/// Bytes of a buffer, from one device's memory to another's. The sender's stream packs them, the receiver's stream
/// unpacks them: what happens to the buffer in between does not change them.
struct Copy {
  std::string buffer;
  std::vector<ByteRange> ranges;  ///< ascending
  int from = 0;                   ///< devices
  int to = 0;
  double seconds = 0;      ///< of the link
  double gpu_seconds = 0;  ///< of the sender to pack, and of the receiver to unpack

  [[nodiscard]] std::int64_t bytes() const;
  bool operator==(const Copy&) const = default;
};

/// Work of one stream without interruption: waits, then unpacks what it takes, runs its kernels, packs what it sends.
/// It begins when the segment before it on the stream has ended.
struct Segment {
  int phase = 0;
  int device = 0;
  int stream = 0;
  std::vector<std::string> kernels;  ///< ids, with repeats written out; empty: it only takes
  std::vector<int> waits;            ///< earlier segments of other streams of the device that end first
  std::vector<int> takes;            ///< copies; of an earlier segment of the pass
  std::vector<int> sends;            ///< copies
  double seconds = 0;                ///< of its kernels

  bool operator==(const Segment&) const = default;
};

/// Between two devices, one direction.
struct Lanes {
  int from = 0;
  int to = 0;
  int count = 1;  ///< links that are alike, used in turn

  bool operator==(const Lanes&) const = default;
};

struct Schedule {
  std::vector<Device> devices;
  std::vector<Lanes> links;  ///< of pairs with more than one
  std::vector<Phase> phases;
  std::vector<Segment> segments;  ///< by phase, in launch order
  std::vector<Copy> copies;

  bool operator==(const Schedule&) const = default;
};

}  // namespace tangram::dispatch
