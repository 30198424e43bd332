#include "fields.hpp"

#include <optional>

#include "embedded_text.hpp"
#include "tangram/io/json_writer.hpp"

namespace tangram::plan {

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
constexpr std::int64_t kMostNanoseconds = std::int64_t{1} << 60;
constexpr std::int64_t kMostIdentifier = std::int64_t{1} << 26;

using Bounds = std::pair<std::int64_t, std::int64_t>;

/// [first, last] with 0 <= first <= last <= most.
std::optional<Bounds> range_of(const io::Node& node, std::int64_t most) {
  if (node.kind != io::NodeKind::kArray || node.items.size() != 2) return std::nullopt;
  const io::Node& first = node.items[0];
  const io::Node& last = node.items[1];
  const bool whole = first.kind == io::NodeKind::kInteger && last.kind == io::NodeKind::kInteger;
  if (!whole || first.integer < 0 || first.integer > last.integer || last.integer > most) return std::nullopt;
  return Bounds{first.integer, last.integer};
}

}  // namespace

void FieldWriter::embedded(std::string_view key, const std::string& text) {
  Json parsed = Json::parse(text, nullptr, false);
  const bool canonical = parsed.is_object() && io::write_compact(parsed) == text;
  put(key, canonical ? std::move(parsed) : Json(text));
}

void FieldReader::embedded(std::string_view key, std::string& text) {
  const io::Node* node = reader_->raw(key);
  if (node == nullptr) return;
  if (node->kind == io::NodeKind::kString) {
    text = node->text;
    return;
  }
  const Json parsed = Json::parse(embedded_text(reader_->document(), *node), nullptr, false, true);
  text = parsed.is_discarded() ? std::string() : io::write_compact(parsed);
}

void FieldReader::index(std::string_view key, int& value, std::int64_t count) {
  const std::int64_t last = std::max<std::int64_t>(count - 1, 0);
  value = static_cast<int>(std::clamp<std::int64_t>(reader_->integer(key, {0, last}), 0, last));
}

void FieldReader::identifier(std::string_view key, int& value, std::size_t position) {
  if (reader_->integer(key, {0, kMostIdentifier}) != static_cast<std::int64_t>(position)) {
    reader_->error_at(key, "wrong-identifier",
                      std::string(key) + " must be the position in the list, " + std::to_string(position));
  }
  value = static_cast<int>(position);
}

void FieldReader::bytes(std::string_view key, Bytes& value) { value = Bytes(reader_->integer(key, {0, kMostBytes})); }

void FieldReader::integers(std::string_view key, std::vector<int>& values, std::int64_t count) {
  const io::Node* node = reader_->raw(key);
  if (node == nullptr || node->kind != io::NodeKind::kArray) {
    reader_->error_at(key, "wrong-type", std::string(key) + " must be an array of integers");
    return;
  }
  for (const io::Node& item : node->items) {
    if (item.kind == io::NodeKind::kInteger && item.integer >= 0 && item.integer < count) {
      values.push_back(static_cast<int>(item.integer));
    } else {
      reader_->error_at(item, reader_->pointer() + "/" + std::string(key), "out-of-range",
                        "expected an integer from 0 to " + std::to_string(count - 1));
    }
  }
}

// A double holds 53 bits: dividing and multiplying by a power of ten and rounding gives the same integer back for
// anything below 2^50.
Nanoseconds FieldReader::time(std::string_view key, double nanoseconds_per_unit) {
  const double most = static_cast<double>(kMostNanoseconds) / nanoseconds_per_unit;
  return Nanoseconds(std::llround(reader_->number(key, {0.0, most, false}) * nanoseconds_per_unit));
}

std::pair<std::int64_t, std::int64_t> FieldReader::bounds(std::string_view key, std::int64_t most) {
  const io::Node* node = reader_->raw(key);
  if (node != nullptr) {
    if (const auto range = range_of(*node, most)) return *range;
  }
  reader_->error_at(key, "wrong-range",
                    std::string(key) + " must be [first, last] with 0 <= first <= last <= " + std::to_string(most));
  return {0, 0};
}

std::vector<std::pair<std::int64_t, std::int64_t>> FieldReader::bounds_list(std::string_view key, std::int64_t most) {
  const io::Node* node = reader_->raw(key);
  std::vector<Bounds> list;
  if (node != nullptr && node->kind == io::NodeKind::kArray) {
    for (const io::Node& item : node->items) {
      if (const auto range = range_of(item, most)) list.push_back(*range);
    }
  }
  if (list.empty() || list.size() != node->items.size()) {
    reader_->error_at(
        key, "wrong-range",
        std::string(key) + " must be a list of [first, last] with 0 <= first <= last <= " + std::to_string(most));
  }
  return list;
}

void FieldReader::expect(std::string_view key, std::int64_t value) {
  if (reader_->integer(key) != value) {
    reader_->error_at(key, "inconsistent", std::string(key) + " must be " + std::to_string(value));
  }
}

/// An empty text is not known: what it comes from is missing, which is reported already.
void FieldReader::expect(std::string_view key, std::string_view value) {
  if (value.empty()) return;
  if (reader_->string(key) != value) {
    reader_->error_at(key, "inconsistent", std::string(key) + " must be \"" + std::string(value) + '"');
  }
}

}  // namespace tangram::plan
