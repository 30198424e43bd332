// nccl-tests (github.com/NVIDIA/nccl-tests): the text that all_reduce_perf and its sisters print. Read of it: which
// GPUs on which hosts ("#  Rank  0 Group  0 Pid .. on HOST device  0 [0x10] NVIDIA A100-SXM4-40GB"), and per size
//     size(B)  count  type  [redop  root]  time(us)  algbw(GB/s)  busbw  #wrong  time  algbw  busbw  #wrong
// of which the first time, out of place, counts. The operation is named by "# Collective test starting:
// all_reduce_perf" in newer versions, by the log's file name in older ones. The bandwidths are not used but to check
// size and time: in GB/s they must be size over time; and bus over algorithm bandwidth must be what the operation makes
// it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "context.hpp"
#include "reading.hpp"
#include "tangram/cluster/gpu_names.hpp"

namespace tangram::profiles {
namespace {

constexpr std::size_t kFirstColumns = 3;  // size, count, type
constexpr std::size_t kLastColumns = 8;   // two times (time, algbw, busbw, wrong)
constexpr double kLeastBandwidth = 1;     // GB/s; printed with two decimals, below it says too little

struct OperationName {
  std::string_view text;
  cost::Exchange operation;
};
constexpr std::array kOperations = {OperationName{"all_reduce", cost::Exchange::kAllReduce},
                                    OperationName{"allreduce", cost::Exchange::kAllReduce},
                                    OperationName{"all_gather", cost::Exchange::kAllGather},
                                    OperationName{"allgather", cost::Exchange::kAllGather},
                                    OperationName{"reduce_scatter", cost::Exchange::kReduceScatter},
                                    OperationName{"reducescatter", cost::Exchange::kReduceScatter},
                                    OperationName{"alltoall", cost::Exchange::kAllToAll},
                                    OperationName{"all_to_all", cost::Exchange::kAllToAll},
                                    OperationName{"sendrecv", cost::Exchange::kSendRecv},
                                    OperationName{"send_recv", cost::Exchange::kSendRecv}};

std::optional<cost::Exchange> operation_in(std::string_view text) {
  for (const OperationName& name : kOperations) {
    if (text.find(name.text) != std::string_view::npos) return name.operation;
  }
  return std::nullopt;
}

double bytes_of_type(const std::string& type) {
  static const std::map<std::string, double> kBytes = {
      {"int8", 1},     {"uint8", 1}, {"int32", 4},  {"uint32", 4},   {"int64", 8},    {"uint64", 8}, {"half", 2},
      {"bfloat16", 2}, {"float", 4}, {"double", 8}, {"fp8_e4m3", 1}, {"fp8_e5m2", 1}, {"f8e4m3", 1}, {"f8e5m2", 1}};
  const auto found = kBytes.find(type);
  return found != kBytes.end() ? found->second : 0;
}

struct Line {
  double size = 0;
  double count = 0;
  double element = 0;
  double time = 0;
  double algorithm_bandwidth = 0;
  double bus_bandwidth = 0;
};

struct Devices {
  std::map<std::string, int> ranks_on;  ///< by host
  std::set<int> groups;
  std::set<int> ranks;
  int listed = 0;
  std::string gpu;
};

struct Test {
  std::optional<cost::Exchange> operation;
  std::string name;
  Devices devices;
  std::vector<Line> lines;
};

/// "[1,0]<stdout>:" of mpirun --tag-output.
std::string without_tag(const std::string& line) {
  const std::size_t end = line.find(">:");
  return line.starts_with('[') && end != std::string::npos ? line.substr(end + 2) : line;
}

/// Numbers where a result line has them; nothing for any other line.
std::optional<Line> parse_line(const std::vector<std::string>& words) {
  if (words.size() < kFirstColumns + kLastColumns) return std::nullopt;
  const std::size_t times = words.size() - kLastColumns;
  const auto size = number(words[0]);
  const auto count = number(words[1]);
  const auto time = number(words[times]);
  const auto algorithm = number(words[times + 1]);
  const auto bus = number(words[times + 2]);
  const double element = bytes_of_type(words[2]);
  if (!size || !count || !time || !algorithm || !bus || !(element > 0)) return std::nullopt;
  return Line{*size, *count, element, *time, *algorithm, *bus};
}

/// "Rank 0 Group 0 Pid 12 on host device 0 [0x10] NVIDIA A100-SXM4-40GB"
void take_rank(const std::vector<std::string>& words, const std::string& line, Devices& devices) {
  const auto after = [&](const char* word) {
    const auto found = std::ranges::find(words, word);
    return found == words.end() || found + 1 == words.end() ? std::string() : *(found + 1);
  };
  ++devices.listed;
  devices.ranks.insert(whole_number(after("Rank")).value_or(0));
  devices.groups.insert(whole_number(after("Group")).value_or(0));
  ++devices.ranks_on[after("on")];
  const std::size_t bracket = line.rfind(']');
  if (bracket != std::string::npos && bracket + 2 < line.size()) devices.gpu = line.substr(bracket + 2);
}

std::vector<Test> read_tests(const SourceFile& file) {
  std::vector<Test> tests(1);
  tests.back().operation = operation_in(file_name(file.path));
  tests.back().name = file_name(file.path);
  const auto next = [&] {
    if (!tests.back().lines.empty()) tests.push_back({tests.back().operation, tests.back().name, {}, {}});
  };
  for (const std::string& raw : lines_of(file.text)) {
    const std::string line = without_tag(raw);
    const std::vector<std::string> words = words_of(line);
    if (const auto name = text_between(line, "Collective test starting: ", "")) {
      next();
      tests.back().operation = operation_in(*name);
      tests.back().name = *name;
    } else if (line.starts_with("# Using devices")) {
      next();
    } else if (words.size() > 4 && words[0] == "#" && words[1] == "Rank") {
      take_rank(words, line, tests.back().devices);
    } else if (const auto result = parse_line(words); result && result->size > 0) {
      tests.back().lines.push_back(*result);
    }
  }
  if (tests.back().lines.empty()) tests.pop_back();
  return tests;
}

class TestImport {
 public:
  TestImport(const Test& test, const std::string& file, Context& context)
      : test_(test), file_(file), context_(context), lines_(test.lines) {}

  void run() {
    if (!test_.operation) return left_out("operation", fmt::format("{}: not an operation that plans use", test_.name));
    operation_ = *test_.operation;
    const auto group = find_group();
    if (!group) return;
    const auto* device = context_.gpu(test_.devices.gpu, file_);
    if (device == nullptr || !ratio_fits(group->ranks())) return;
    find_size_unit(group->ranks());
    const auto unit = find_time_unit();
    if (!unit) return;
    std::vector<RawPoint> points;
    points.reserve(lines_.size());
    for (const Line& line : lines_) points.push_back({line.size, line.time});
    add_curve(context_, *device, operation_, *group, points, *unit, file_,
              fmt::format("nccl-tests, {}", cost::to_string(operation_)));
  }

 private:
  void left_out(const char* code, std::string message) { context_.notes.left_out(code, file_, std::move(message)); }

  /// Equal numbers of ranks on each host, each rank listed once.
  std::optional<cost::CurveGroup> find_group() {
    const Devices& d = test_.devices;
    if (d.listed == 0) {
      left_out("no-ranks", "no \"Rank\" lines say which GPUs took part");
      return std::nullopt;
    }
    if (std::ssize(d.ranks) != d.listed) {
      left_out("no-ranks", "ranks are listed twice: the processes did not find each other (built without MPI?)");
      return std::nullopt;
    }
    const int each = d.ranks_on.begin()->second;
    if (std::ranges::any_of(d.ranks_on, [&](const auto& host) { return host.second != each; })) {
      left_out("no-ranks", "hosts with different numbers of ranks make no group of a plan");
      return std::nullopt;
    }
    const auto groups = static_cast<int>(d.groups.size());
    const auto nodes = static_cast<int>(d.ranks_on.size());
    if (d.listed < 2 * groups) {
      left_out("no-ranks", "a group of one rank exchanges nothing");
      return std::nullopt;
    }
    if (groups == 1) return cost::CurveGroup{each, nodes, 1};
    if (each % groups != 0) {
      left_out("no-ranks", fmt::format("{} groups do not divide the {} ranks of a host", groups, each));
      return std::nullopt;
    }
    return cost::CurveGroup{each / groups, nodes, groups};
  }

  /// Bus over algorithm bandwidth names the operation as well. All-gather and reduce-scatter printed both equal until
  /// 2020.
  bool ratio_fits(int ranks) {
    std::vector<double> ratios;
    for (const Line& line : lines_) {
      if (line.algorithm_bandwidth >= kLeastBandwidth) ratios.push_back(line.bus_bandwidth / line.algorithm_bandwidth);
    }
    if (ratios.empty()) return true;
    const double ratio = median(ratios);
    const double wanted = cost::bus_share(operation_, ranks);
    const bool old = std::abs(ratio - 1) < 0.02 &&
                     (operation_ == cost::Exchange::kAllGather || operation_ == cost::Exchange::kReduceScatter);
    if (std::abs(ratio - wanted) < 0.02 * wanted || old) return true;
    left_out("operation",
             fmt::format("bus bandwidth is {:.3g} times algorithm bandwidth, {} of {} ranks makes it {:.3g}", ratio,
                         cost::to_string(operation_), ranks, wanted));
    return false;
  }

  /// Sizes are bytes: elements times their width (and, counted per rank, times the ranks).
  void find_size_unit(int ranks) {
    const auto elements = [&](const Line& line) {
      return line.element > 1 && (line.size == line.count || line.size == line.count * ranks);
    };
    if (!std::ranges::all_of(lines_, elements)) return;
    for (Line& line : lines_) line.size *= line.element;
    context_.notes.corrected("size-unit", file_,
                             "sizes are elements, not bytes: they equal the counts of a wider type");
  }

  /// Microseconds where size over time gives the printed GB/s.
  std::optional<Unit> find_time_unit() {
    std::vector<double> ratios;
    std::vector<double> elements;
    for (const Line& line : lines_) {
      if (!(line.algorithm_bandwidth > 0) || !(line.time > 0)) continue;
      if (line.algorithm_bandwidth < kLeastBandwidth && lines_.size() > 4) continue;
      ratios.push_back(line.algorithm_bandwidth / (line.size / line.time));
      elements.push_back(line.element);
    }
    if (ratios.empty()) return kMicroseconds;
    const double claimed = median(ratios);
    for (const Unit& unit : {kMicroseconds, kMilliseconds, kSeconds}) {
      const auto rate = rate_unit(claimed, 1 / unit.scale, median(elements));
      if (!rate || (rate->name != "GB/s" && unit != kMicroseconds)) continue;
      if (unit != kMicroseconds) {
        context_.notes.corrected("time-unit", file_,
                                 fmt::format("times are {}, not us: that is what sizes and GB/s make", unit.name));
      }
      if (rate->name != "GB/s") {
        context_.notes.corrected("bandwidth-unit", file_,
                                 fmt::format("bandwidths are {}, not GB/s; size and time count", rate->name));
      }
      return unit;
    }
    if (old_ratio(claimed)) return kMicroseconds;
    left_out("inconsistent", "size over time is not the printed bandwidth in any unit");
    return std::nullopt;
  }

  /// Versions until 2020 took the share (n-1)/n into all-gather's and reduce-scatter's algorithm bandwidth.
  [[nodiscard]] bool old_ratio(double claimed) const {
    const int ranks = test_.devices.listed;
    const double share = static_cast<double>(ranks - 1) / ranks;
    return std::abs(claimed * 1e3 / share - 1) < 0.02;
  }

  const Test& test_;
  std::string file_;
  Context& context_;
  std::vector<Line> lines_;
  cost::Exchange operation_ = cost::Exchange::kAllReduce;
};

}  // namespace

void import_nccl_tests(Context& context) {
  for (const SourceFile& file : context.request.files) {
    const std::vector<Test> tests = read_tests(file);
    if (tests.empty()) context.notes.left_out("unknown-file", file.path, "no result lines of nccl-tests");
    for (const Test& test : tests) TestImport(test, file.path, context).run();
  }
}

}  // namespace tangram::profiles
