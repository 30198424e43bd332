#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "infer.hpp"

namespace tangram::accuracy {
namespace {

/// Letters and digits in lower case, up to a remark in brackets: "V100-16GB (p3)" is "v100", "16gb".
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text.substr(0, text.find('('))) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

bool is_decimal(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool is_memory_size(const std::string& word) {
  return word.size() > 2 && word.ends_with("gb") && is_decimal(word.front());
}

/// "4xgh", four of them, to "gh".
std::string without_multiplier(const std::string& word) {
  const auto x = static_cast<std::size_t>(std::ranges::find_if_not(word, is_decimal) - word.begin());
  return x > 0 && x + 1 < word.size() && word[x] == 'x' ? word.substr(x + 1) : word;
}

/// "80" to "80gb"; longer numbers are products ("3090").
std::string with_unit(const std::string& word) {
  return word.size() < 4 && std::ranges::all_of(word, is_decimal) ? word + "gb" : word;
}

/// "ampere" for a class of GPUs that nobody named, "gh" for GH200.
struct Alias {
  const char* word;
  std::vector<std::string> means;
};

const std::vector<Alias>& aliases() {
  static const std::vector<Alias> list = {{"ampere", {"a100", "80gb"}}, {"gh", {"gh200"}}};
  return list;
}

std::vector<std::string> product_words(std::string_view published) {
  std::vector<std::string> words;
  for (const std::string& printed : words_of(published)) {
    const std::string word = with_unit(without_multiplier(printed));
    const auto known = std::ranges::find(aliases(), word, &Alias::word);
    if (known == aliases().end()) {
      words.push_back(word);
    } else {
      words.insert(words.end(), known->means.begin(), known->means.end());
    }
  }
  return words;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

/// Words that a publication may leave out, and that alone name no product.
bool is_optional(const std::string& word) {
  return word == "rtx" || word == "sxm" || word == "pcie" || word == "nvl" || is_memory_size(word);
}

/// A product of several words needs all of them: "RTX-2080-Ti", "RTX-6000-Ada".
bool names_product(const std::vector<std::string>& published, const std::vector<std::string>& own) {
  const auto named = [&](const std::string& word) { return is_optional(word) || has(published, word); };
  return !std::ranges::all_of(own, is_optional) && std::ranges::all_of(own, named);
}

bool contradicts_memory(const std::vector<std::string>& published, const std::vector<std::string>& own) {
  const auto other = [&](const std::string& word) { return is_memory_size(word) && !has(own, word); };
  return std::ranges::any_of(own, is_memory_size) && std::ranges::any_of(published, other);
}

/// How well a catalogue name fits: words in common, then server modules before cards; -1: not at all.
int fit(const std::vector<std::string>& published, const cluster::GpuType& device) {
  const auto own = words_of(device.name);
  if (!names_product(published, own) || contradicts_memory(published, own)) return -1;
  const auto common = std::ranges::count_if(published, [&](const std::string& word) { return has(own, word); });
  return static_cast<int>(4 * common) + (has(own, "sxm") ? 2 : 0);
}

}  // namespace

const cluster::GpuType* find_device(std::string_view published, std::span<const cluster::GpuType> devices) {
  const auto words = product_words(published);
  const cluster::GpuType* best = nullptr;
  int best_fit = -1;
  for (const cluster::GpuType& device : devices) {
    const int score = fit(words, device);
    if (score > best_fit) {
      best = &device;
      best_fit = score;
    }
  }
  return best;
}

}  // namespace tangram::accuracy
