// What Metis prints (SamsungLabs/Metis, cost_het_cluster.py): behind the header "rank, cost, ..." one line per plan,
//   1, 4968.09, (<DeviceType.T4: 't4'>, <DeviceType.A100: 'a100'>), [8, 8], [(8, 1), (8, 1)], 16, [0, 3, 10]
// are rank, milliseconds, the order of GPU types, GPUs, (dp, tp) and bounds of the stages' layers, with the number of
// microbatches before the last. Embedding and head count as layers. The log before it may say the batch ("gbs=128").
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "limits.hpp"
#include "readers.hpp"
#include "tangram/io/reader.hpp"
#include "text.hpp"

namespace tangram::importing {

namespace {

constexpr std::string_view kHeader = "rank, cost, node_sequence";

/// A line's words one after another. After a mistake all else is empty.
class Cursor {
 public:
  Cursor(const SourceFile& file, std::size_t first, std::size_t end, Diagnostics& sink)
      : file_(file), at_(first), end_(end), sink_(sink) {}

  [[nodiscard]] std::size_t position() const { return at_; }
  [[nodiscard]] Place place(std::size_t first) const { return place_in(file_, first, at_ - first); }

  /// Any of the characters; blanks before it mean nothing.
  bool take(std::string_view any) {
    skip();
    if (at_ == end_ || any.find(file_.text[at_]) == std::string_view::npos) return false;
    ++at_;
    return true;
  }

  void expect(std::string_view any, const char* what) {
    if (good() && !take(any)) complain(fmt::format("{} was expected", what));
  }

  template <class Number>
  Number number(Number least, Number most) {
    skip();
    Number value = least;
    const auto [stop, error] = std::from_chars(file_.text.data() + at_, file_.text.data() + end_, value);
    if (!good()) return least;
    if (error != std::errc() || !(value >= least && value <= most)) {
      complain(fmt::format("a number from {} to {} was expected", least, most));
      return least;
    }
    at_ = static_cast<std::size_t>(stop - file_.text.data());
    return value;
  }

  std::int64_t count(std::int64_t least, std::int64_t most) { return number<std::int64_t>(least, most); }

  /// Letters, digits, "_" and "-".
  std::string name() {
    skip();
    const std::size_t first = at_;
    const auto belongs = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    };
    while (at_ < end_ && belongs(file_.text[at_])) ++at_;
    if (at_ == first && good()) complain("a GPU type was expected");
    return file_.text.substr(first, at_ - first);
  }

  /// Items between brackets of either kind, with commas, also behind the last.
  template <class Item>
  void list(const char* what, Item item) {
    expect("[(", what);
    while (good() && !take("])")) {
      item();
      if (good() && !take(",")) {
        expect("])", "a comma or the end of the list");
        return;
      }
    }
  }

  void skip_to(std::string_view any) {
    while (at_ < end_ && any.find(file_.text[at_]) == std::string_view::npos) ++at_;
  }

 private:
  [[nodiscard]] bool good() const { return sink_.empty(); }

  void skip() {
    while (at_ < end_ && (file_.text[at_] == ' ' || file_.text[at_] == '\t')) ++at_;
  }

  void complain(std::string message) {
    sink_.push_back(at(place_in(file_, at_, 1), "bad-metis-line", std::move(message),
                       "rank, cost, (GPU types), [GPUs], [(dp, tp)], microbatches, [bounds of layers]"));
  }

  const SourceFile& file_;
  std::size_t at_;
  std::size_t end_;
  Diagnostics& sink_;
};

struct StageText {
  std::int64_t gpus = 1;
  std::int64_t dp = 1;
  std::int64_t tp = 1;
  Place place;
};

class MetisReader {
 public:
  MetisReader(const SourceFile& file, Diagnostics& sink) : file_(file), sink_(sink) {}

  Job read(std::int64_t rank) {
    Job job;
    const std::size_t line = line_of(rank);
    if (line == std::string::npos) return job;
    Cursor cursor(file_, line, std::min(file_.text.find('\n', line), file_.text.size()), sink_);
    (void)cursor.count(1, io::kCount.max);
    cursor.expect(",", "a comma");
    job.claimed_seconds = cursor.number<double>(0, 1e15) / 1e3;
    cursor.expect(",", "a comma");
    read_types(cursor, job);
    cursor.expect(",", "a comma");
    read_stages(cursor);
    cursor.expect(",", "a comma");
    const std::size_t batches = cursor.position() + 1;
    JobPipeline pipeline;
    pipeline.microbatches = cursor.count(1, io::kCount.max);
    job.batch = cursor.place(batches);
    cursor.expect(",", "a comma");
    read_bounds(cursor);
    if (!sink_.empty() || !agrees(cursor.place(line))) return job;
    for (std::size_t s = 0; s < stages_.size(); ++s) pipeline.stages.push_back(stage(s));
    job.pipelines.push_back(std::move(pipeline));
    job.overrides.global_batch = batch_before(line);
    job.fill = Fill::kMicrobatches;
    job.counts_ends = true;
    return job;
  }

 private:
  /// Behind the header each line begins with its rank; without a header all lines may.
  std::size_t line_of(std::int64_t rank) {
    const std::size_t header = file_.text.find(kHeader);
    const std::string wanted = fmt::format("{},", rank);
    std::size_t line = header == std::string::npos ? 0 : file_.text.find('\n', header);
    if (header != std::string::npos && line != std::string::npos) ++line;
    while (line < file_.text.size()) {
      if (file_.text.compare(line, wanted.size(), wanted) == 0) return line;
      line = std::min(file_.text.find('\n', line), file_.text.size() - 1) + 1;
    }
    sink_.push_back(at(place_of(file_), "no-such-rank", fmt::format("no line of the list has rank {}", rank),
                       "give what cost_het_cluster.py printed, with its list \"rank, cost, ...\" at the end"));
    return std::string::npos;
  }

  static void read_types(Cursor& cursor, Job& job) {
    cursor.list("the order of GPU types", [&] {
      std::size_t first = cursor.position();
      const bool is_enum = cursor.take("<");
      std::string name = cursor.name();
      if (is_enum) {  // <DeviceType.A100: 'a100'>
        cursor.expect(".", "a dot");
        first = cursor.position();
        name = cursor.name();
      }
      job.device_order.push_back({std::move(name), cursor.place(first)});
      if (is_enum) cursor.skip_to(">");
      if (is_enum) cursor.expect(">", "\">\"");
    });
  }

  void read_stages(Cursor& cursor) {
    std::int64_t gpus = 0;
    cursor.list("the GPUs of each stage", [&] {
      const std::size_t first = cursor.position();
      StageText stage;
      stage.gpus = cursor.count(1, kMostGpus);
      stage.place = cursor.place(first);
      gpus += stage.gpus;
      if (gpus > kMostGpus && sink_.empty())
        sink_.push_back(at(stage.place, "too-many-gpus", "the stages have more than 1,000,000 GPUs"));
      stages_.push_back(std::move(stage));
    });
    cursor.expect(",", "a comma");
    cursor.list("(dp, tp) of each stage", [&] {
      const std::size_t first = cursor.position();
      std::vector<std::int64_t> degrees;
      cursor.list("(dp, tp)", [&] { degrees.push_back(cursor.count(1, kMostDegree)); });
      if (!sink_.empty()) return;
      if (degrees.size() == 2 && strategies_ < stages_.size()) {
        StageText& stage = stages_[strategies_];
        stage.dp = degrees[0];
        stage.tp = degrees[1];
        if (stage.dp * stage.tp == stage.gpus) {
          ++strategies_;
          return;
        }
      }
      sink_.push_back(at(cursor.place(first), "strategy-differs",
                         "each stage has a (dp, tp), whose product is the number of its GPUs"));
    });
  }

  void read_bounds(Cursor& cursor) {
    cursor.list("the bounds of the stages' layers", [&] { bounds_.push_back(cursor.count(0, kMostLayers)); });
  }

  bool agrees(const Place& line) {
    if (!stages_.empty() && strategies_ == stages_.size() && bounds_.size() == stages_.size() + 1) return true;
    sink_.push_back(at(line, "wrong-length",
                       fmt::format("{} stages have GPUs, {} have (dp, tp), and there are {} bounds of layers",
                                   stages_.size(), strategies_, bounds_.size())));
    return false;
  }

  JobStage stage(std::size_t s) const {
    const StageText& from = stages_[s];
    JobStage stage;
    stage.first = bounds_[s];
    stage.last = bounds_[s + 1];
    stage.place = from.place;
    stage.by_speed = true;
    const Replica replica{static_cast<int>(from.tp), 1, std::vector<GpuRequest>(static_cast<std::size_t>(from.tp))};
    stage.replicas.assign(static_cast<std::size_t>(from.dp), replica);
    return stage;
  }

  /// "gbs=128" of the log, if it is there.
  std::optional<std::int64_t> batch_before(std::size_t line) const {
    const std::size_t found = file_.text.rfind("gbs=", line);
    if (found == std::string::npos) return std::nullopt;
    std::int64_t batch = 0;
    const char* first = file_.text.data() + found + 4;
    const auto [stop, error] = std::from_chars(first, file_.text.data() + line, batch);
    if (error != std::errc() || batch < io::kCount.min || batch > io::kCount.max) return std::nullopt;
    return batch;
  }

  const SourceFile& file_;
  Diagnostics& sink_;
  std::vector<StageText> stages_;
  std::size_t strategies_ = 0;
  std::vector<std::int64_t> bounds_;
};

}  // namespace

Job read_metis(SortedFiles files, std::int64_t rank, Diagnostics& sink) {
  if (files.job.size() != 1) {
    sink.push_back(at({}, "no-plan", "Metis' list of plans is one file", "give what cost_het_cluster.py printed"));
    return {};
  }
  Job job = MetisReader(*files.job.front(), sink).read(rank);
  job.ranks = std::move(files.ranks);
  return job;
}

}  // namespace tangram::importing
