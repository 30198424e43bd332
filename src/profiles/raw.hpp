// What a tool's files say before it is believed. Goes in: rows in the tool's own units. Comes out: a profile whose rows
// read_profile accepts, and notes on what was corrected or left out.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tangram/profiles/detect.hpp"
#include "tangram/profiles/import.hpp"

namespace tangram::profiles {

class Notes {
 public:
  void detected(std::string code, std::string file, std::string message) {
    add(NoteKind::kDetected, std::move(code), std::move(file), std::move(message));
  }
  void corrected(std::string code, std::string file, std::string message) {
    add(NoteKind::kCorrected, std::move(code), std::move(file), std::move(message));
  }
  void left_out(std::string code, std::string file, std::string message) {
    add(NoteKind::kLeftOut, std::move(code), std::move(file), std::move(message));
  }
  /// What several files give rise to is said once.
  [[nodiscard]] std::vector<Note> take();

 private:
  void add(NoteKind kind, std::string code, std::string file, std::string message);
  std::vector<Note> notes_;
};

/// The model that was profiled, as far as a row needs to know it.
struct Dimensions {
  model::BlockType block;
  int blocks = 0;
  std::int64_t vocabulary = 0;
  std::int64_t hidden = 0;
  std::int64_t sequence_length = 0;
  DType dtype = DType::kFp16;
  bool flash_attention = false;
};

struct RawRow {
  cost::ProfileKind kind = cost::ProfileKind::kBlock;
  std::int64_t sequence_length = 0;
  int tp = 1;
  bool sequence_parallel = false;
  std::int64_t samples = 1;
  double forward = 0;  ///< in the tool's unit
  double backward = 0;
  double weight_forward = 0;   ///< of the products with weights alone, where the tool times operators; 0: not told
  double weight_backward = 0;  ///< the same
  double weight_gradient = 0;  ///< what a missing weight gradient would take; 0: not told
  double activation = 0;       ///< bytes; 0: not measured
  std::string file;
};

struct RawProfile {
  std::string gpu;  ///< catalogue name
  std::string source;
  std::string date;
  Dimensions dimensions;
  Unit unit = kSeconds;
  bool includes_tp_communication = false;
  bool backward_measured = true;  ///< false: worked out from forward, so that nothing can be missing in it
  std::vector<RawRow> rows;
  std::vector<cost::CollectiveCurve> collectives;
};

[[nodiscard]] cost::Profile normalized(RawProfile raw, const cluster::GpuType& device, Notes& notes);

/// Sorted points of equal size averaged in log; those that find_mistake doubts are left out with a note.
[[nodiscard]] cost::CollectiveCurve normalized_curve(cost::CollectiveCurve curve, const cluster::GpuType& device,
                                                     const std::string& file, Notes& notes);

/// What everything read so far becomes: profiles of one GPU type are joined, units of equal description too.
[[nodiscard]] std::vector<cost::Profile> join(std::vector<cost::Profile> profiles);

}  // namespace tangram::profiles
