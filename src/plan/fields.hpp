// Fields of the plan file. A record describes each of its fields once: the key, the member, what the value may be. The
// description is a function over one of two visitors: FieldWriter makes JSON of a value, FieldReader takes a value
// from a file. They have the same members.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/shared_text.hpp"
#include "tangram/base/units.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::plan {

using Json = nlohmann::ordered_json;

/// A list of records in the file.
enum class Presence : std::uint8_t {
  kSome,   ///< at least one
  kAny,    ///< always written, may be absent
  kIfAny,  ///< written where there are any
};

class FieldWriter {
 public:
  static constexpr bool kReads = false;

  explicit FieldWriter(Json& out) : out_(&out) {}

  void text(std::string_view key, std::string_view value) { put(key, std::string(value)); }
  void text_or(std::string_view key, std::string_view value) { text(key, value); }
  void text_if(std::string_view key, std::string_view value) {
    if (!value.empty()) text(key, value);
  }
  template <class T>
  void integer(std::string_view key, const T& value, io::IntegerRange = {}) {
    put(key, value);
  }
  void index(std::string_view key, int value, std::int64_t) { put(key, value); }
  template <class T>
  void element(std::string_view key, const T& value, const std::vector<T>& list) {
    put(key, std::ranges::find(list, value) - list.begin());
  }
  void identifier(std::string_view key, int value, std::size_t) { put(key, value); }
  template <class T>
  void number(std::string_view key, const T& value, io::NumberRange = {}) {
    if constexpr (std::is_arithmetic_v<T>) {
      put(key, value);
    } else {
      put(key, value.value());
    }
  }
  template <class T>
  void number_if(std::string_view key, const T& value, io::NumberRange range) {
    if (value > T(0)) number(key, value, range);
  }
  void boolean(std::string_view key, bool value) { put(key, value); }
  void boolean_or(std::string_view key, bool value) { put(key, value); }
  void milliseconds(std::string_view key, Nanoseconds value) { put(key, value.as_double() / 1e6); }
  void milliseconds_if(std::string_view key, Nanoseconds value) {
    if (value > Nanoseconds(0)) milliseconds(key, value);
  }
  void seconds(std::string_view key, Nanoseconds value) { put(key, value.as_double() / 1e9); }
  void bytes(std::string_view key, Bytes value) { put(key, value.value()); }
  /// `instead` of the value's own word, where it is not empty.
  template <class E>
  void choice(std::string_view key, E value, io::Choices<E> choices, std::string_view instead = {}) {
    const auto same = [&](const auto& choice) { return choice.second == value; };
    text(key, instead.empty() ? std::ranges::find_if(choices, same)->first : instead);
  }
  /// The name of one of several rows.
  template <class E, class Row>
  void row(std::string_view key, E value, std::span<const Row> rows, E Row::* of_row) {
    text(key, std::ranges::find(rows, value, of_row)->name);
  }
  void strings(std::string_view key, const std::vector<std::string>& values) { put(key, values); }
  void integers(std::string_view key, const std::vector<int>& values, std::int64_t) { put(key, values); }
  /// [first, last)
  template <class T>
  void range(std::string_view key, T first, T last, std::int64_t) {
    put(key, Json::array({first, last}));
  }
  /// A list of ranges, at least one.
  template <class Range>
  void ranges(std::string_view key, const std::vector<Range>& ranges, std::int64_t) {
    Json list = Json::array();
    for (const Range& range : ranges) list.push_back(Json::array({range.first, range.last}));
    put(key, std::move(list));
  }
  /// What follows from other fields, and is checked when it is read.
  template <class Function>
  void repeats(std::string_view key, Function value) {
    put(key, value());
  }
  /// Whether a field stands in the file.
  [[nodiscard]] bool has(std::string_view, bool written) const { return written; }
  void check(bool, std::string_view, const char*, const std::string&) const {}

  template <class Function>
  void object(std::string_view key, Function describe) {
    put(key, written(describe));
  }
  template <class T, class Function>
  void object_if(std::string_view key, const std::optional<T>& value, Function describe) {
    if (value) object(key, [&](FieldWriter& io) { describe(io, *value); });
  }
  template <class T, class Function>
  void records(std::string_view key, const std::vector<T>& values, Presence presence, Function describe) {
    if (presence == Presence::kIfAny && values.empty()) return;
    Json list = Json::array();
    for (std::size_t i = 0; i < values.size(); ++i) {
      list.push_back(written([&](FieldWriter& io) { describe(io, values[i], i); }));
    }
    put(key, std::move(list));
  }
  /// An object whose keys are a field of the records.
  template <class T, class Function>
  void map(std::string_view key, const std::vector<T>& values, std::string T::* name, Function describe) {
    Json object = Json::object();
    for (const T& value : values) object[value.*name] = written([&](FieldWriter& io) { describe(io, value); });
    put(key, std::move(object));
  }
  template <class T>
  void texts(std::string_view key, const std::vector<T>& values, std::string T::* name, std::string T::* text) {
    Json object = Json::object();
    for (const T& value : values) object[value.*name] = value.*text;
    put(key, std::move(object));
  }
  /// JSON text of our own: an object where it is canonical, so that reading gives the same text back, a string
  /// otherwise.
  void embedded(std::string_view key, const std::string& text);
  void embedded_if(std::string_view key, const std::string& text) {
    if (!text.empty()) embedded(key, text);
  }

 private:
  template <class Value>
  void put(std::string_view key, Value&& value) {
    (*out_)[std::string(key)] = std::forward<Value>(value);
  }

  template <class Function>
  static Json written(Function describe) {
    Json out;
    FieldWriter inner(out);
    describe(inner);
    return out;
  }

  Json* out_;
};

class FieldReader {
 public:
  static constexpr bool kReads = true;

  explicit FieldReader(io::ObjectReader& reader) : reader_(&reader) {}

  void text(std::string_view key, std::string& value) { value = reader_->string(key); }
  void text_or(std::string_view key, std::string& value) { value = reader_->string_or(key, value); }
  void text_or(std::string_view key, SharedText& value) { value = reader_->string_or(key, value.str()); }
  void text_if(std::string_view key, std::string& value) { text_or(key, value); }
  template <class T>
  void integer(std::string_view key, T& value, io::IntegerRange range = {}) {
    value = static_cast<T>(reader_->integer(key, range));
  }
  /// Into a list of so many.
  void index(std::string_view key, int& value, std::int64_t count);
  template <class T>
  void element(std::string_view key, T& value, const std::vector<T>& list) {
    int position = 0;
    index(key, position, static_cast<std::int64_t>(list.size()));
    if (!list.empty()) value = at(list, position);
  }
  /// Identifiers are written for people and programs, and must equal the position.
  void identifier(std::string_view key, int& value, std::size_t position);
  template <class T>
  void number(std::string_view key, T& value, io::NumberRange range = {}) {
    value = T(reader_->number(key, range));
  }
  template <class T>
  void number_if(std::string_view key, T& value, io::NumberRange range) {
    value = T(reader_->number_or(key, 0, range));
  }
  void boolean(std::string_view key, bool& value) { value = reader_->boolean(key); }
  void boolean_or(std::string_view key, bool& value) { value = reader_->boolean_or(key, value); }
  void milliseconds(std::string_view key, Nanoseconds& value) { value = time(key, 1e6); }
  void milliseconds_if(std::string_view key, Nanoseconds& value) {
    if (reader_->has(key)) milliseconds(key, value);
  }
  void seconds(std::string_view key, Nanoseconds& value) { value = time(key, 1e9); }
  void bytes(std::string_view key, Bytes& value);
  template <class E>
  void choice(std::string_view key, E& value, io::Choices<E> choices, std::string_view = {}) {
    value = reader_->choice<E>(key, choices);
  }
  template <class E, class Row>
  void row(std::string_view key, E& value, std::span<const Row> rows, E Row::* of_row) {
    std::vector<std::string> names;
    for (const Row& each : rows) names.emplace_back(each.name);
    if (const auto number = reader_->choice_of(key, names)) value = rows[*number].*of_row;
  }
  void strings(std::string_view key, std::vector<std::string>& values) { values = reader_->strings_if(key); }
  void integers(std::string_view key, std::vector<int>& values, std::int64_t count);
  /// A half-open range [first, last), first <= last <= most.
  template <class T>
  void range(std::string_view key, T& first, T& last, std::int64_t most) {
    const auto [low, high] = bounds(key, most);
    first = static_cast<T>(low);
    last = static_cast<T>(high);
  }
  /// Each as above; where they are none, `ranges` is left as it is.
  template <class Range>
  void ranges(std::string_view key, std::vector<Range>& ranges, std::int64_t most) {
    std::vector<Range> read;
    for (const auto& [low, high] : bounds_list(key, most)) {
      read.push_back({static_cast<int>(low), static_cast<int>(high)});
    }
    if (!read.empty()) ranges = std::move(read);
  }
  template <class Function>
  void repeats(std::string_view key, Function value) {
    reader_->ignore(key);
    repeated_.push_back([this, key, value] { expect(key, value()); });
  }
  [[nodiscard]] bool has(std::string_view key, bool) const { return reader_->has(key); }
  void check(bool ok, std::string_view key, const char* code, const std::string& message) {
    if (!ok) reader_->error_at(key, code, message);
  }

  template <class Function>
  void object(std::string_view key, Function describe) {
    if (auto inner = reader_->object(key)) read(*inner, describe);
  }
  template <class T, class Function>
  void object_if(std::string_view key, std::optional<T>& value, Function describe) {
    if (auto inner = reader_->object_if(key)) read(*inner, [&](FieldReader& io) { describe(io, value.emplace()); });
  }
  template <class T, class Function>
  void records(std::string_view key, std::vector<T>& values, Presence presence, Function describe) {
    for (io::ObjectReader& entry : presence == Presence::kSome ? reader_->objects(key) : reader_->objects_if(key)) {
      T value;
      read(entry, [&](FieldReader& io) { describe(io, value, values.size()); });
      values.push_back(std::move(value));
    }
  }
  template <class T, class Function>
  void map(std::string_view key, std::vector<T>& values, std::string T::* name, Function describe) {
    for (auto& [word, entry] : reader_->object_members(key)) {
      T value;
      value.*name = word;
      read(entry, [&](FieldReader& io) { describe(io, value); });
      values.push_back(std::move(value));
    }
  }
  template <class T>
  void texts(std::string_view key, std::vector<T>& values, std::string T::* name, std::string T::* text) {
    for (auto& [word, said] : reader_->string_members(key)) {
      T& value = values.emplace_back();
      value.*name = word;
      value.*text = said;
    }
  }
  void embedded(std::string_view key, std::string& text);
  void embedded_if(std::string_view key, std::string& text) { embedded(key, text); }
  [[nodiscard]] io::ObjectReader& reader() { return *reader_; }

  /// A record, whole.
  template <class Function>
  static void read(io::ObjectReader& reader, Function describe) {
    FieldReader inner(reader);
    describe(inner);
    for (const auto& compare : inner.repeated_) compare();
    reader.finish();
  }

 private:
  Nanoseconds time(std::string_view key, double nanoseconds_per_unit);
  std::pair<std::int64_t, std::int64_t> bounds(std::string_view key, std::int64_t most);
  std::vector<std::pair<std::int64_t, std::int64_t>> bounds_list(std::string_view key, std::int64_t most);
  void expect(std::string_view key, std::int64_t value);
  void expect(std::string_view key, std::string_view value);

  io::ObjectReader* reader_;
  std::vector<std::function<void()>> repeated_;
};

/// A record as a visitor takes it.
template <class Io, class T>
using Of = std::conditional_t<Io::kReads, T, const T>;

}  // namespace tangram::plan
