#include "arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "text.hpp"

namespace tangram::importing {

namespace {

bool is_name_character(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// A script's words one after another, and the variables it sets on the way.
class Shell {
 public:
  explicit Shell(const SourceFile& file) : file_(file), text_(file.text) {}

  /// False at the end.
  bool next(Argument& word) {
    ended_ = false;
    skip_gap();
    if (at_ >= text_.size()) return false;
    const std::size_t first = at_;
    std::string value;
    while (at_ < text_.size() && !ends_word(text_[at_])) take(value);
    if (at_ == first) ++at_;  // a separator alone: an empty word
    word = {std::move(value), place_in(file_, first, at_ - first)};
    remember(word.value);
    return true;
  }

  /// A list or a line ended before the last word.
  [[nodiscard]] bool ended_before() const { return ended_; }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
  static bool ends_word(char c) { return is_blank(c) || c == '(' || c == ')' || c == ';' || c == '&'; }

  void skip_gap() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool joined = c == '\\' && (text_.compare(at_ + 1, 1, "\n") == 0 || text_.compare(at_ + 1, 2, "\r\n") == 0);
      if (joined) {
        at_ = text_.find('\n', at_) + 1;
      } else if (is_blank(c) || c == '(' || c == ')') {
        if (c == '(' || c == ')') in_list_ = c == '(';
        if (c == ')' || (c == '\n' && !in_list_)) ended_ = true;
        ++at_;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  void take(std::string& value) {
    const char c = text_[at_++];
    if (c == '\'') {
      const std::size_t end = std::min(text_.find('\'', at_), text_.size());
      value += text_.substr(at_, end - at_);
      at_ = std::min(end + 1, text_.size());
    } else if (c == '"') {
      while (at_ < text_.size() && text_[at_] != '"') take_expanded(value);
      if (at_ < text_.size()) ++at_;
    } else {
      --at_;
      take_expanded(value);
    }
  }

  void take_expanded(std::string& value) {
    const char c = text_[at_++];
    if (c == '\\' && at_ < text_.size()) {
      if (text_[at_] != '\n') value += text_[at_];
      ++at_;
    } else if (c == '$' && at_ < text_.size() && (text_[at_] == '{' || is_name_character(text_[at_]))) {
      value += expanded();
    } else {
      value += c;
    }
  }

  /// Behind the "$" of $NAME, ${NAME} or ${NAME:-otherwise}; what the script does not set stays as it is written.
  std::string expanded() {
    const bool braces = text_[at_] == '{';
    const std::size_t first = at_ + (braces ? 1 : 0);
    std::size_t end = first;
    while (end < text_.size() && is_name_character(text_[end])) ++end;
    const std::string name(text_.substr(first, end - first));
    std::string otherwise;
    std::size_t behind = end;
    if (braces) {
      behind = std::min(text_.find('}', end), text_.size());
      if (text_.compare(end, 2, ":-") == 0 && behind >= end + 2) otherwise = text_.substr(end + 2, behind - end - 2);
      behind = std::min(behind + 1, text_.size());
    }
    const auto set = variables_.find(name);
    std::string value = set != variables_.end() ? set->second : otherwise;
    if (value.empty()) value = "$" + std::string(text_.substr(at_, behind - at_));
    at_ = behind;
    return value;
  }

  void remember(const std::string& word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) return;
    const std::string name = word.substr(0, equals);
    if (std::ranges::all_of(name, is_name_character)) variables_[name] = word.substr(equals + 1);
  }

  const SourceFile& file_;
  std::string_view text_;
  std::size_t at_ = 0;
  bool in_list_ = false;
  bool ended_ = false;
  std::map<std::string, std::string> variables_;
};

}  // namespace

std::vector<std::string> Argument::values() const {
  std::vector<std::string> all;
  if (!value.empty()) all.push_back(value);
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

const Argument* ArgumentMap::find(const std::string& name) const {
  const auto found = arguments_.find(name);
  return found == arguments_.end() ? nullptr : &found->second;
}

std::string ArgumentMap::text_or(const std::string& name, const std::string& fallback) const {
  const Argument* found = find(name);
  return found == nullptr ? fallback : found->value;
}

std::int64_t ArgumentMap::count_or(const std::string& name, std::int64_t fallback, std::int64_t most) {
  const Argument* found = find(name);
  if (found == nullptr) return fallback;
  const std::string& text = found->value;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 1 && value <= most) return value;
  if (text.starts_with('$')) {
    error_at(name, "unknown-variable", fmt::format("--{} is {}, which the file does not set", name, text),
             "write the number in its place");
  } else {
    error_at(name, "not-a-count", fmt::format("--{} needs a whole number from 1, not \"{}\"", name, text));
  }
  return fallback;
}

std::int64_t ArgumentMap::count(const std::string& name) {
  if (!has(name)) error_at(name, "missing-argument", fmt::format("--{} is missing", name));
  return count_or(name, 1);
}

Place ArgumentMap::place_of(const std::string& name) const {
  const Argument* found = find(name);
  return found == nullptr ? file_ : found->place;
}

void ArgumentMap::error_at(const std::string& name, std::string code, std::string message, std::string hint) {
  sink_->push_back(at(place_of(name), std::move(code), std::move(message), std::move(hint)));
}

std::vector<Argument> words_of(const SourceFile& file) {
  Shell shell(file);
  std::vector<Argument> words;
  Argument word;
  while (shell.next(word)) words.push_back(std::move(word));
  return words;
}

void read_arguments(const SourceFile& file, ArgumentMap& arguments) {
  Shell shell(file);
  Argument word;
  std::string name;
  bool has_value = false;
  while (shell.next(word)) {
    if (word.value.starts_with("--") && word.value.size() > 2) {
      const std::size_t equals = word.value.find('=');
      name = word.value.substr(2, equals == std::string::npos ? equals : equals - 2);
      std::ranges::replace(name, '_', '-');
      has_value = equals != std::string::npos;
      arguments.set(name, {has_value ? word.value.substr(equals + 1) : "", std::move(word.place)});
    } else if (!name.empty() && !has_value) {
      arguments.set(name, std::move(word));
      has_value = true;
    } else if (shell.ended_before()) {
      name.clear();
    } else if (!name.empty()) {
      arguments.add_value(name, std::move(word.value));
    }
  }
}

}  // namespace tangram::importing
