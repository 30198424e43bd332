#include "topology_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "tangram/base/at.hpp"

namespace tangram::inventory {
namespace {

constexpr auto kHint = "give what nvidia-smi topo -m prints, whole";
constexpr std::size_t kMostMatrixGpus = 1024;

/// Colours and underlines of a terminal become blanks, so that columns stay.
std::string without_escapes(std::string_view line) {
  std::string text(line);
  for (std::size_t at = text.find('\x1b'); at != std::string::npos; at = text.find('\x1b', at)) {
    const std::size_t end = std::min(text.find('m', at), text.size() - 1);
    std::fill(text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(end) + 1, ' ');
  }
  return text;
}

std::vector<Text> words_of(std::string_view line, int number) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<Text> words;
  for (std::size_t at = line.find_first_not_of(kBlank); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    words.push_back({std::string(line.substr(at, end - at)), number, static_cast<int>(at) + 1});
    at = line.find_first_not_of(kBlank, end);
  }
  return words;
}

bool is_gpu(std::string_view word) { return word.starts_with("GPU") && small_number(word.substr(3)) >= 0; }

bool is_card(std::string_view word) {
  return (word.starts_with("NIC") && small_number(word.substr(3)) >= 0) || word.starts_with("mlx") ||
         word.starts_with("bnxt_re") || word.starts_with("irdma") || word.starts_with("ib");
}

bool is_nvlink(std::string_view word) { return word.starts_with("NV") && small_number(word.substr(2)) > 0; }

bool is_known(std::string_view word) {
  constexpr std::array<std::string_view, 7> kWords = {"X", "SYS", "NODE", "PHB", "PXB", "PIX", "PIB"};
  return is_nvlink(word) || std::ranges::count(kWords, word) > 0;
}

class Parser {
 public:
  explicit Parser(const io::Document& document) : document_(document) {}

  Expected<TopologyMatrix> parse() {
    int number = 0;
    std::string_view rest = document_.text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::vector<Text> words = words_of(without_escapes(rest.substr(0, end)), ++number);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (words.empty()) continue;
      if (words.front().value.starts_with("Legend")) break;
      if (header_.empty()) {
        if (!take_header(words)) return fail(std::move(mistakes_));
      } else if (is_gpu(words.front().value)) {
        take_row(words);
      }
    }
    if (header_.empty()) add_error(Text{}, "no-matrix", "no matrix of GPUs in it");
    finish();
    if (!mistakes_.empty()) return fail(std::move(mistakes_));
    return std::move(matrix_);
  }

 private:
  void add_error(const Text& at, std::string code, std::string message) {
    mistakes_.push_back(error_at(document_, at, std::move(code), std::move(message), kHint));
  }

  bool take_header(const std::vector<Text>& words) {
    for (const Text& word : words) {
      if (!is_gpu(word.value) && !is_card(word.value)) break;  // "CPU Affinity"
      header_.push_back(word);
      matrix_.gpus += is_gpu(word.value) ? 1 : 0;
    }
    matrix_.cards = static_cast<int>(header_.size()) - matrix_.gpus;
    if (matrix_.gpus > 0 && header_.size() <= kMostMatrixGpus) return true;
    add_error(words.front(), "no-matrix", "expected the names of GPUs: GPU0 GPU1 ...");
    return false;
  }

  void take_row(const std::vector<Text>& words) {
    rows_.push_back(words.front());
    if (std::ssize(rows_) > matrix_.gpus) {
      return add_error(words.front(), "bad-matrix", fmt::format("more rows than the {} GPUs on top", matrix_.gpus));
    }
    if (words.size() <= header_.size()) {
      return add_error(words.back(), "bad-matrix",
                       fmt::format("the row ends after {} of {} cells", words.size() - 1, header_.size()));
    }
    std::vector<bool> links;
    for (std::size_t column = 0; column < header_.size(); ++column) {
      const Text& cell = words[column + 1];
      if (!is_known(cell.value)) {
        return add_error(cell, "bad-matrix", fmt::format("\"{}\" is no way to reach a GPU", printable(cell.value)));
      }
      if (is_gpu(header_[column].value)) {
        if ((cell.value == "X") != (header_[column].value == words.front().value)) {
          return add_error(cell, "bad-matrix",
                           fmt::format("{} to {}: \"X\" belongs on the diagonal, and nowhere else", words.front().value,
                                       header_[column].value));
        }
        links.push_back(is_nvlink(cell.value));
      }
    }
    matrix_.nvlink.push_back(std::move(links));
  }

  void finish() {
    if (!mistakes_.empty()) return;
    const std::size_t gpus = matrix_.nvlink.size();
    if (std::ssize(matrix_.nvlink) < matrix_.gpus) {
      return add_error(rows_.empty() ? header_.front() : rows_.back(), "bad-matrix",
                       fmt::format("{} rows for {} GPUs", gpus, matrix_.gpus));
    }
    for (std::size_t a = 0; a < gpus; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        if (matrix_.nvlink[a][b] == matrix_.nvlink[b][a]) continue;
        return add_error(rows_[a], "bad-matrix",
                         fmt::format("{} to {} is NVLink in one direction alone", rows_[a].value, rows_[b].value));
      }
    }
  }

  const io::Document& document_;
  std::vector<Text> header_;
  std::vector<Text> rows_;
  TopologyMatrix matrix_;
  Diagnostics mistakes_;
};

}  // namespace

int TopologyMatrix::joined(const std::vector<int>& which) const {
  std::set<int> left(which.begin(), which.end());
  std::size_t clique = 0;
  while (!left.empty()) {
    std::vector<int> island = {*left.begin()};
    left.erase(left.begin());
    for (std::size_t i = 0; i < island.size(); ++i) {  // whoever a link reaches, over several links too
      for (auto other = left.begin(); other != left.end();) {
        const bool linked = at(at(nvlink, island[i]), *other);
        if (linked) island.push_back(*other);
        other = linked ? left.erase(other) : std::next(other);
      }
    }
    if (clique != 0 && clique != island.size()) return 1;
    clique = island.size();
  }
  return std::max(1, static_cast<int>(clique));
}

Expected<TopologyMatrix> parse_topology(const io::Document& document) { return Parser(document).parse(); }

}  // namespace tangram::inventory
