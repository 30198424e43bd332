// `scontrol show nodes` as text: records that begin with NodeName=, of KEY=VALUE in several lines or, with -o, in one.
// A value ends before the next word that looks like a key; values such as OS= and Reason= have spaces.
#include <fmt/format.h>

#include <map>
#include <optional>

#include "slurm_node.hpp"

namespace tangram::inventory {
namespace {

using Record = std::map<std::string, Text, std::less<>>;

struct Word {
  std::size_t first = 0;
  std::size_t end = 0;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Length of the key of "CPUAlloc=0", 0 where the word is none. Keys begin with a capital letter.
std::size_t key_length(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0 || word[0] < 'A' || word[0] > 'Z') return 0;
  for (const char c : word.substr(0, equals)) {
    if (!is_letter(c) && c != '_' && !(c >= '0' && c <= '9')) return 0;
  }
  return equals;
}

std::vector<Word> words_of(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<Word> words;
  for (std::size_t at = line.find_first_not_of(kBlank); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    words.push_back({at, end});
    at = line.find_first_not_of(kBlank, end);
  }
  return words;
}

struct Entry {
  std::string key;
  Text value;
};

/// The KEY=VALUE of a line; nullopt where it begins with something else.
std::optional<std::vector<Entry>> entries_of(std::string_view line, int number) {
  std::vector<Entry> entries;
  for (const Word& word : words_of(line)) {
    const bool free_text = !entries.empty() && entries.back().key == "Reason";
    const std::size_t key = free_text ? 0 : key_length(line.substr(word.first, word.end - word.first));
    if (key == 0 && entries.empty()) return std::nullopt;
    if (key == 0) {
      Text& value = entries.back().value;
      const auto first = static_cast<std::size_t>(value.column - 1);
      value.value = std::string(line.substr(first, word.end - first));
    } else {
      const std::size_t first = word.first + key + 1;
      entries.push_back({std::string(line.substr(word.first, key)),
                         {std::string(line.substr(first, word.end - first)), number, static_cast<int>(first) + 1}});
    }
  }
  return entries;
}

std::vector<Text> split(const Text& text, char separator) {
  std::vector<Text> parts;
  for (std::size_t first = 0; first <= text.value.size();) {
    const std::size_t end = std::min(text.value.find(separator, first), text.value.size());
    if (end > first) parts.push_back(text.part(first, end - first));
    first = end + 1;
  }
  return parts;
}

class Reader {
 public:
  Reader(const io::Document& document, Collector& collector) : document_(document), collector_(collector) {}

  void read() {
    int number = 0;
    std::string_view rest = document_.text;
    while (!rest.empty() && !stopped_) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      take_line(rest.substr(0, end), ++number);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (stopped_) return;
    finish();
    if (!any_) {
      collector_.add_error(error_at(document_, Text{}, "no-nodes", "no node in it: nothing begins with NodeName=",
                                    "give what scontrol show nodes prints"));
    }
  }

 private:
  void take_line(std::string_view line, int number) {
    auto entries = entries_of(line, number);
    if (!entries) return complain(line, number);
    for (Entry& entry : *entries) {
      if (entry.key == "NodeName") {
        finish();
        any_ = true;
      } else if (!any_) {
        collector_.add_error(error_at(document_, entry.value, "no-node",
                                      fmt::format("{}= before any NodeName=", entry.key),
                                      "give what scontrol show nodes prints, whole"));
        stopped_ = true;
        return;
      }
      record_.emplace(std::move(entry.key), std::move(entry.value));  // the first: other values may look like keys
    }
  }

  void complain(std::string_view line, int number) {
    const Word word = words_of(line).front();
    const Text at{std::string(line.substr(word.first, word.end - word.first)), number,
                  static_cast<int>(word.first) + 1};
    collector_.add_error(error_at(document_, at, "bad-line", "expected KEY=VALUE",
                                  "give what scontrol show nodes prints, whole and nothing else"));
    stopped_ = true;
  }

  [[nodiscard]] Text value(std::string_view key) const {
    const auto found = record_.find(key);
    return found != record_.end() ? found->second : Text{};
  }

  void finish() {
    if (record_.empty()) return;
    SlurmNode slurm;
    slurm.name = value("NodeName");
    slurm.states = split(value("State"), '+');
    if (slurm.states.empty()) {
      collector_.add_error(error_at(document_, slurm.name, "missing-key",
                                    "a node without State=", "give what scontrol show nodes prints, whole"));
    } else {
      if (value("Gres").value != "(null)") slurm.gres = value("Gres");
      slurm.reason = value("Reason").value;
      for (const Text& name : split(value("Partitions"), ',')) slurm.partitions.emplace_back(trimmed(name.value));
      take_slurm_node(document_, slurm, collector_);
    }
    record_.clear();
  }

  const io::Document& document_;
  Collector& collector_;
  Record record_;
  bool any_ = false;
  bool stopped_ = false;
};

}  // namespace

void read_slurm_text(const io::Document& document, Collector& collector) { Reader(document, collector).read(); }

}  // namespace tangram::inventory
