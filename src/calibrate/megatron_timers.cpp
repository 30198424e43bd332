#include "megatron_timers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "tangram/io/limits.hpp"

namespace tangram::calibrate {
namespace {

constexpr std::string_view kFlags = "--timing-log-level 2 --timing-log-option all";
constexpr std::string_view kForward = "forward-compute";
constexpr std::string_view kBackward = "backward-compute";
constexpr std::string_view kBatch = "batch-generator";  // called inside forward-compute

std::string_view without_leading(std::string_view text, std::string_view characters) {
  const std::size_t first = text.find_first_not_of(characters);
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

/// The number that the text begins with, behind blanks; taken off the text.
template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  text = without_leading(text, " ");
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// The number behind `label`, wherever that is.
std::optional<std::int64_t> number_behind(std::string_view text, std::string_view label) {
  const std::size_t at = text.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + label.size());
  return take_number<std::int64_t>(text);
}

/// Of "[2026-01-31 10:00:00.000000]", wherever that is.
std::string date_in(std::string_view line) {
  constexpr std::string_view kPattern = "[dddd-dd-dd ";
  for (std::size_t at = line.find('['); at != std::string_view::npos; at = line.find('[', at + 1)) {
    const std::string_view text = line.substr(at, kPattern.size());
    const bool matches =
        std::ranges::equal(text, kPattern, [](char c, char p) { return p == 'd' ? c >= '0' && c <= '9' : c == p; });
    if (matches) return std::string(text.substr(1, kPattern.size() - 2));
  }
  return {};
}

/// "rank  3: 412.25" at the end of a line.
std::optional<std::pair<int, double>> rank_time(std::string_view line) {
  constexpr std::string_view kRank = "rank ";
  const std::size_t at = line.rfind(kRank);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + kRank.size());
  const auto rank = take_number<int>(line);
  if (!rank || !line.starts_with(':')) return std::nullopt;
  line.remove_prefix(1);
  const auto time = take_number<double>(line);
  const bool whole = time && without_leading(line, " \r").empty();
  constexpr io::IntegerRange kRanks = io::integer_limit("rank");
  if (!whole || *rank < kRanks.min || *rank > kRanks.max || !(*time > 0)) return std::nullopt;
  return std::pair(*rank, *time);
}

/// "(401.10, 412.25)" or "412.25" behind a timer's dots: the least and the most, or the most alone.
RankTimes extremes(std::string_view text) {
  RankTimes times;
  text = without_leading(text, ". :(");
  for (int rank = 0; rank < 2; ++rank) {
    const auto time = take_number<double>(text);
    if (time && *time > 0) times[rank] = *time;
    text = without_leading(text, ",");
  }
  return times;
}

/// Where the words of a timer's name begin in a line: name, then blanks and dots or the colon.
std::size_t find_timer(std::string_view line, std::string_view name) {
  const std::size_t at = line.find(name);
  if (at == std::string_view::npos) return at;
  const bool begins = at == 0 || line[at - 1] == ' ' || line[at - 1] == ':';
  const std::size_t end = at + name.size();
  const bool ends = end < line.size() && (line[end] == ' ' || line[end] == ':');
  return begins && ends ? at : std::string_view::npos;
}

class LogReader {
 public:
  explicit LogReader(const profiles::SourceFile& file) : file_(file) {}

  Expected<std::vector<TimerEntry>> read() {
    std::string_view rest = file_.text;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      ++line_;
      read_line(rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    set_first_iterations();
    std::erase_if(entries_, [](const TimerEntry& e) { return e.forward.empty() || e.backward.empty(); });
    if (entries_.empty()) return fail(no_times());
    return std::move(entries_);
  }

 private:
  void read_line(std::string_view line) {
    if (read_iteration(line) || read_heading(line) || !in_times_) return;
    if (by_rank_) {
      read_by_rank(line);
    } else {
      read_extremes(line);
    }
  }

  bool read_iteration(std::string_view line) {
    constexpr std::string_view kIteration = " iteration ";
    const std::size_t at = line.find(kIteration);
    if (at == std::string_view::npos || line.find('|', at) == std::string_view::npos) return false;
    const auto iteration = number_behind(line, kIteration);
    if (!iteration) return false;
    iteration_ = *iteration;
    global_batch_ = number_behind(line, "global batch size:").value_or(0);
    date_ = date_in(line);
    in_times_ = false;
    return true;
  }

  bool read_heading(std::string_view line) {
    const bool all = line.find("times across ranks (ms):") != std::string_view::npos;
    if (!all && line.find("time across ranks (ms):") == std::string_view::npos) return false;
    any_times_ = true;
    by_rank_ = all;
    timer_ = nullptr;
    in_times_ = iteration_ > 0;  // those of the start are of no iteration
    if (!in_times_) return true;
    TimerEntry entry;
    entry.line = line_;
    entry.iteration = iteration_;
    entry.global_batch = global_batch_;
    entry.date = date_;
    entry.by_rank = all;
    entries_.push_back(std::move(entry));
    return true;
  }

  RankTimes* times_of(std::string_view line, std::size_t& at, std::string_view& name) {
    TimerEntry& entry = entries_.back();
    for (const auto& [timer, times] : {std::pair(kForward, &entry.forward), std::pair(kBackward, &entry.backward),
                                       std::pair(kBatch, &entry.batch)}) {
      at = find_timer(line, timer);
      name = timer;
      if (at != std::string_view::npos) return times;
    }
    return nullptr;
  }

  void read_by_rank(std::string_view line) {
    if (const auto time = rank_time(line)) {
      if (timer_ != nullptr) timer_->insert(*time);
      return;
    }
    std::size_t at = 0;
    std::string_view name;
    timer_ = times_of(line, at, name);
  }

  void read_extremes(std::string_view line) {
    std::size_t at = 0;
    std::string_view name;
    if (RankTimes* times = times_of(line, at, name)) *times = extremes(line.substr(at + name.size()));
  }

  /// Times are means over the iterations since the entry before; the first entry spans as many as the second.
  void set_first_iterations() {
    for (std::size_t i = 1; i < entries_.size(); ++i) {
      const std::int64_t before = entries_[i - 1].iteration;
      entries_[i].first = before < entries_[i].iteration ? before + 1 : entries_[i].iteration;
    }
    if (entries_.empty()) return;
    const std::int64_t span = entries_.size() > 1 ? entries_[1].iteration - entries_[1].first : 0;
    entries_.front().first = std::max<std::int64_t>(1, entries_.front().iteration - span);
  }

  [[nodiscard]] Diagnostic no_times() const {
    Diagnostic diagnostic;
    diagnostic.code = "no-timers";
    diagnostic.where.file = file_.path;
    diagnostic.message = any_times_       ? fmt::format("the log has timers, but not {} and {}", kForward, kBackward)
                         : iteration_ > 0 ? std::string("the log has iterations, but no timers")
                                          : std::string("this is no log of Megatron-LM's training");
    diagnostic.hint = fmt::format("train with {}", kFlags);
    return diagnostic;
  }

  const profiles::SourceFile& file_;
  int line_ = 0;
  std::int64_t iteration_ = 0;
  std::int64_t global_batch_ = 0;
  std::string date_;
  bool any_times_ = false;
  bool in_times_ = false;
  bool by_rank_ = false;
  RankTimes* timer_ = nullptr;  ///< of the entry that is read: what ranks that follow belong to
  std::vector<TimerEntry> entries_;
};

}  // namespace

Expected<std::vector<TimerEntry>> read_timers(const profiles::SourceFile& file) { return LogReader(file).read(); }

}  // namespace tangram::calibrate
