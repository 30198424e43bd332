// Strict access to an object of a Document. Goes in: a node and the keys a format knows. Comes out: typed values and,
// in the sink, one diagnostic per mistake (unknown key with a spelling hint, wrong type, out of range, missing key).
// A getter that reports a mistake returns its fallback, so that a reader can go on and collect all mistakes at once.
#pragma once

#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tangram/io/document.hpp"

namespace tangram::io {

struct IntegerRange {
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  std::string_view why = {};  ///< the hint of an error; may be empty
};

/// Bounds are inclusive; `min_open` excludes the lower one (for "must be positive"). `or_zero` takes 0 below them, too.
struct NumberRange {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_open = false;
  bool or_zero = false;
  std::string_view why = {};

  [[nodiscard]] bool is_low(double value) const {
    return !(or_zero && value == 0) && (min_open ? value <= min : value < min);
  }
  /// "at least" and its like, of the lower bound.
  [[nodiscard]] std::string_view lower_relation() const {
    return or_zero ? "0 or at least" : min_open ? "greater than" : "at least";
  }
};
inline constexpr NumberRange kPositive{0.0, 1e30, true};
inline constexpr NumberRange kNotNegative{0.0, 1e30, false};
inline constexpr IntegerRange kCount{1, 100'000'000};

template <class E>
using Choices = std::initializer_list<std::pair<std::string_view, E>>;

class ObjectReader {
 public:
  /// Reports "expected an object" into the sink when node is something else; every getter then returns its fallback.
  ObjectReader(const Document& document, const Node& node, std::string pointer, Diagnostics& sink);

  [[nodiscard]] bool valid() const { return valid_; }
  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] const std::string& pointer() const { return pointer_; }
  [[nodiscard]] const Node& node() const { return *node_; }
  [[nodiscard]] const Document& document() const { return *document_; }
  [[nodiscard]] Diagnostics& sink() const { return *sink_; }

  // Required: a missing key is reported at the object. The value returned after a mistake is the range's nearest to 1
  // (integers, numbers), "" (strings), the first choice.
  std::int64_t integer(std::string_view key, IntegerRange range = {});
  double number(std::string_view key, NumberRange range = {});
  bool boolean(std::string_view key);
  std::string string(std::string_view key);  // never empty: "" is reported

  // Optional.
  std::int64_t integer_or(std::string_view key, std::int64_t fallback, IntegerRange range = {});
  double number_or(std::string_view key, double fallback, NumberRange range = {});
  bool boolean_or(std::string_view key, bool fallback);
  std::string string_or(std::string_view key, std::string fallback);
  std::optional<double> number_if(std::string_view key, NumberRange range = {});
  std::optional<std::int64_t> integer_if(std::string_view key, IntegerRange range = {});

  template <class E>
  E choice(std::string_view key, Choices<E> choices) {
    const int index = choice_index(key, names(choices), true);
    return (choices.begin() + (index < 0 ? 0 : index))->second;
  }
  template <class E>
  E choice_or(std::string_view key, E fallback, Choices<E> choices) {
    const int index = choice_index(key, names(choices), false);
    return index < 0 ? fallback : (choices.begin() + index)->second;
  }

  /// Required: which of the names; nullopt after reporting that it is none of them.
  std::optional<std::size_t> choice_of(std::string_view key, const std::vector<std::string>& names) {
    const int index = choice_index(key, names, true);
    return index < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(index));
  }

  // Nested. The optional forms return nullopt (empty) without a report when the key is absent.
  std::optional<ObjectReader> object(std::string_view key);
  std::optional<ObjectReader> object_if(std::string_view key);
  std::vector<ObjectReader> objects(std::string_view key);     // required array of at least one object
  std::vector<ObjectReader> objects_if(std::string_view key);  // optional array of objects
  std::vector<std::string> strings_if(std::string_view key);   // optional array of strings (one string counts as one)
  std::vector<std::pair<std::string, ObjectReader>> object_members(std::string_view key);  // optional map of objects
  std::vector<std::pair<std::string, std::string>> string_members(std::string_view key);   // optional map of strings

  /// The raw value (marks the key as known), or nullptr.
  const Node* raw(std::string_view key);
  /// Declares a key as known without reading it.
  void ignore(std::string_view key);

  /// Words that people write for a key of this object: where one is unknown, the key is what the hint names.
  void also_called(std::string_view key, std::initializer_list<std::string_view> words);

  /// Reports a mistake of the caller's own finding at the value of `key` (at the object when there is no such key).
  void error_at(std::string_view key, std::string code, std::string message, std::string hint = {});
  void error_at(const Node& at, std::string pointer, std::string code, std::string message, std::string hint = {});

  /// Reports every key that no getter has asked for. Call it last, after all getters.
  void finish();

 private:
  template <class E>
  static std::vector<std::string> names(Choices<E> choices) {
    std::vector<std::string> result;
    for (const auto& [name, value] : choices) result.emplace_back(name);
    return result;
  }
  int choice_index(std::string_view key, const std::vector<std::string>& names, bool required);
  const Node* take(std::string_view key);
  const Node* require(std::string_view key);
  [[nodiscard]] std::string child_pointer(std::string_view key) const;

  // The value of a present key, or nullopt after reporting what is wrong with it.
  std::optional<std::int64_t> integer_of(std::string_view key, const Node& node, IntegerRange range);
  std::optional<double> number_of(std::string_view key, const Node& node, NumberRange range);
  std::optional<bool> boolean_of(std::string_view key, const Node& node);
  std::optional<std::string> string_of(std::string_view key, const Node& node);
  std::optional<ObjectReader> object_of(std::string_view key, const Node* node);
  std::vector<ObjectReader> objects_of(std::string_view key, const Node* node);

  void wrong_type(std::string_view key, const Node& node, std::string_view wanted, std::string hint);
  void report_unknown(const Member& member);
  [[nodiscard]] std::optional<std::string> meant_by(std::string_view word, const std::vector<std::string>& keys) const;
  // Takes back "missing key" when an unknown key turns out to be it, misspelt: one mistake, one error.
  void forgive_missing(const std::string& key);

  const Document* document_;
  const Node* node_;
  std::string pointer_;
  Diagnostics* sink_;
  bool valid_ = false;
  std::vector<std::string> asked_;
  std::vector<std::string> missing_;
  std::vector<std::pair<std::string_view, std::string_view>> also_called_;  // word, key
};

}  // namespace tangram::io
