#include "rank_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "text.hpp"

namespace tangram::importing {

namespace {

constexpr int kMostSlots = 1024;  // of a host: far above any

struct Field {
  std::string_view text;
  std::size_t first = 0;  ///< in the file
};

/// Pieces of [first, end) between separators; blanks also separate where `blanks` is set, and then nothing is empty.
std::vector<Field> fields_of(std::string_view text, std::size_t first, std::size_t end, bool blanks) {
  std::vector<Field> fields;
  const auto separates = [&](char c) { return blanks ? c == ' ' || c == '\t' || c == '\r' : c == ','; };
  std::size_t begin = first;
  for (std::size_t i = first; i <= end; ++i) {
    if (i < end && !separates(text[i])) continue;
    if (!blanks || i > begin) fields.push_back({text.substr(begin, i - begin), begin});
    begin = i + 1;
  }
  return fields;
}

/// Calls visit(first, end) for every line, without its break.
template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t end = std::min(text.find('\n', first), text.size());
    const bool carriage = end > first && text[end - 1] == '\r';
    visit(first, carriage ? end - 1 : end);
    first = end + 1;
  }
}

bool read_number(std::string_view text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

bool is_blank(const SourceFile& file) { return file.text.find_first_not_of(" \t\r\n") == std::string::npos; }

/// A mistake that leaves ranks without a GPU: the job can be read, a plan of it would be wrong.
Diagnostic without_ranks(const SourceFile& file, std::string message, std::string hint) {
  Diagnostic diagnostic = at(place_in(file, 0, 1), "no-ranks", std::move(message), std::move(hint));
  diagnostic.kind = ErrorKind::kInfeasible;
  return diagnostic;
}

/// The ranked list of Metis begins alike: its second word is the cost.
bool is_rank_map(const SourceFile& file) {
  return file.text.starts_with("rank,") && !file.text.starts_with("rank, cost");
}

/// "slots=" in the first line that says something.
bool is_host_file(const SourceFile& file) {
  bool decided = false;
  bool is = false;
  for_each_line(file.text, [&](std::size_t first, std::size_t end) {
    const auto words = fields_of(file.text, first, end, true);
    if (decided || words.empty() || words.front().text.starts_with('#')) return;
    decided = true;
    is = words.size() > 1 && words[1].text.starts_with("slots=");
  });
  return is;
}

void read_host_file(const SourceFile& file, std::vector<RankGpu>& ranks, Diagnostics& sink) {
  for_each_line(file.text, [&](std::size_t first, std::size_t end) {
    const auto words = fields_of(file.text, first, end, true);
    if (words.empty() || words.front().text.starts_with('#')) return;
    int slots = 0;
    const bool good = words.size() > 1 && words[1].text.starts_with("slots=") &&
                      read_number(words[1].text.substr(6), slots) && slots > 0 && slots <= kMostSlots;
    if (!good) {
      const Field& wrong = words.size() > 1 ? words[1] : words[0];
      sink.push_back(at(place_in(file, wrong.first, wrong.text.size()), "bad-host-line", "a line is \"HOST slots=N\"",
                        fmt::format("slots go from 1 to {}", kMostSlots)));
      return;
    }
    for (int gpu = 0; gpu < slots; ++gpu) {
      ranks.push_back({std::string(words[0].text), gpu, -1, place_in(file, words[0].first, words[0].text.size())});
    }
  });
}

class RankMapReader {
 public:
  RankMapReader(const SourceFile& file, SortedFiles& sorted, Diagnostics& sink)
      : file_(file), sorted_(sorted), sink_(sink) {}

  void read() {
    for_each_line(file_.text, [&](std::size_t first, std::size_t end) {
      if (first == end) return;
      const auto fields = fields_of(file_.text, first, end, false);
      if (columns_.empty()) {
        for (std::size_t i = 0; i < fields.size(); ++i) columns_.emplace(fields[i].text, i);
        for (const char* name : {"rank", "host", "gpu"}) {
          if (!columns_.contains(name))
            complain(fields.front(), fmt::format("the rank map has no column \"{}\"", name));
        }
      } else if (sink_.empty()) {
        row(fields);
      }
    });
  }

 private:
  void row(const std::vector<Field>& fields) {
    if (fields.size() != columns_.size()) {
      complain(fields.front(), fmt::format("{} columns, the first line has {}", fields.size(), columns_.size()));
      return;
    }
    const Field& rank = fields[columns_.at("rank")];
    const Field& host = fields[columns_.at("host")];
    if (number(rank) != static_cast<int>(sorted_.ranks.size())) {
      complain(rank, fmt::format("rank {} is next", sorted_.ranks.size()));
      return;
    }
    RankGpu assigned{std::string(host.text), number(fields[columns_.at("gpu")]), -1,
                     place_in(file_, host.first, host.text.size())};
    if (const auto island = columns_.find("island"); island != columns_.end())
      assigned.island = number(fields[island->second]);
    const auto pipeline = columns_.find("pipeline");
    const int of = pipeline == columns_.end() ? 0 : number(fields[pipeline->second]);
    sorted_.pipelines = std::max(sorted_.pipelines, of + 1);
    sorted_.ranks.push_back(std::move(assigned));
  }

  int number(const Field& field) {
    int value = 0;
    if (!read_number(field.text, value)) complain(field, "a whole number was expected");
    return value;
  }

  void complain(const Field& field, std::string message) {
    sink_.push_back(at(place_in(file_, field.first, field.text.size()), "bad-rank-map", std::move(message)));
  }

  const SourceFile& file_;
  SortedFiles& sorted_;
  Diagnostics& sink_;
  std::map<std::string_view, std::size_t> columns_;
};

}  // namespace

SortedFiles sort_files(const std::vector<SourceFile>& files, Diagnostics& sink) {
  SortedFiles sorted;
  std::vector<RankGpu> hosts;
  for (const SourceFile& file : files) {
    if (files.size() > 1 && is_blank(file)) {
      sink.push_back(without_ranks(file, "the file is empty",
                                   "a job, a rank map (\"rank,host,gpu\" and one line for each rank) or a host file "
                                   "(\"HOST slots=N\") was expected"));
    } else if (is_rank_map(file)) {
      RankMapReader(file, sorted, sink).read();
      if (sink.empty() && sorted.ranks.empty()) {
        sink.push_back(without_ranks(file, "the rank map names its columns, and lists no rank",
                                     "one line for each rank follows the first: 0,HOST,0,..."));
      }
    } else if (is_host_file(file)) {
      read_host_file(file, hosts, sink);
    } else {
      sorted.job.push_back(&file);
    }
  }
  if (sorted.ranks.empty()) sorted.ranks = std::move(hosts);
  return sorted;
}

}  // namespace tangram::importing
