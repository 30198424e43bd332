// A small model and times of it.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/timings.hpp"
#include "tangram/calibrate/calibration.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/model/model.hpp"

namespace tangram::calibrate::fixtures {

using testing::TimingJson;
using testing::TimingLine;
using testing::timings_header;
using testing::timings_row;

inline const std::string kGpu = "A100-80GB-SXM";

inline model::Model small_model() {
  const std::string text =
      "schema: tangram.model/1\n"
      "name: small\n"
      "architecture: {vocabulary: 32000, hidden: 2048, layers: 4, heads: 16, ffn_hidden: 8192}\n"
      "training: {sequence_length: 2048, global_batch_samples: 64}\n";
  auto model = model::read_model(text, "small.yaml");
  REQUIRE(model);
  model->types.front().name = "dense";
  return *std::move(model);
}

/// A block of small_model() on an A100: 6 ms and 12 ms are what it can take.
inline TimingLine block(std::int64_t step, int rank, double forward_ms = 6, double backward_ms = 12) {
  TimingLine line;
  line.step = step;
  line.rank = rank;
  line.gpu = kGpu;
  line.type = "dense";
  line.samples = 4;
  line.forward = forward_ms / 1e3;
  line.backward = backward_ms / 1e3;
  return line;
}

/// Timings of one file as lines.
class Lines {
 public:
  explicit Lines(bool includes_tp_communication = true)
      : text_(timings_header(small_model(), includes_tp_communication).dump() + "\n") {}
  explicit Lines(const TimingJson& header) : text_(header.dump() + "\n") {}
  Lines& add(const TimingJson& row) {
    text_ += row.dump() + "\n";
    return *this;
  }
  Lines& add(const TimingLine& line) { return add(timings_row(line)); }
  [[nodiscard]] profiles::SourceFile file(const std::string& path = "timings.jsonl") const { return {path, text_}; }

 private:
  std::string text_;
};

inline Timings timings_of(const std::vector<profiles::SourceFile>& files) {
  auto timings = read_timings(files, cluster::catalogue());
  if (!timings) FAIL(render(timings.error()));
  return *std::move(timings);
}

inline Calibration calibrated(const Timings& timings, std::int64_t skip = 0, bool scale = false) {
  auto result = calibrate(timings, {.skip = skip, .gpu = {}, .scale = scale});
  if (!result) FAIL(render(result.error()));
  return *std::move(result);
}

inline Calibration calibrated(const Lines& lines, std::int64_t skip = 0) {
  return calibrated(timings_of({lines.file()}), skip);
}

template <class Result>
std::string refusal_of(const Result& result) {
  REQUIRE_FALSE(result);
  return render(result.error());
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline bool noted(const Calibration& calibration, profiles::NoteKind kind, const std::string& code) {
  return std::ranges::any_of(calibration.notes,
                             [&](const profiles::Note& n) { return n.kind == kind && n.code == code; });
}

inline double ms(Nanoseconds time) { return time.as_double() / 1e6; }

}  // namespace tangram::calibrate::fixtures
