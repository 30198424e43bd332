// Values as JSON and back, by their members (members.hpp): arrays without names. Goes in: a value, or JSON. Comes out:
// the other; reading is strict, so that what does not fit in every count, kind and range is refused.
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "members.hpp"

namespace tangram::planner::search_cache {

using Json = nlohmann::json;

// The last of each enumeration that is read back.
constexpr auto last_of(cost::RecomputeMode) { return cost::RecomputeMode::kFull; }
constexpr auto last_of(cost::EncoderTurns) { return cost::EncoderTurns::kThreePhases; }
constexpr auto last_of(cost::Provenance) { return cost::Provenance::kModelled; }
constexpr auto last_of(parallelizer::FailureKind) { return parallelizer::FailureKind::kNotCached; }
constexpr auto last_of(ErrorKind) { return ErrorKind::kInternal; }

template <class T>
inline constexpr bool kIsQuantity = false;
template <class Tag, class Rep>
inline constexpr bool kIsQuantity<Quantity<Tag, Rep>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <class T, std::size_t N>
inline constexpr bool kIsList<std::array<T, N>> = true;
template <class T>
inline constexpr bool kIsPair = false;
template <class A, class B>
inline constexpr bool kIsPair<std::pair<A, B>> = true;

/// JSON has no infinity and no NaN: they are texts.
inline Json json_of_real(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

template <class T>
Json to_json(const T& value) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string> || std::is_integral_v<T>) {
    return value;
  } else if constexpr (std::is_same_v<T, SharedText>) {
    return value.view();
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<int>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return json_of_real(value);
  } else if constexpr (kIsQuantity<T>) {
    return to_json(value.value());
  } else if constexpr (kIsOptional<T>) {
    return value ? Json::array({to_json(*value)}) : Json::array();
  } else if constexpr (kIsList<T>) {
    Json list = Json::array();
    for (const auto& item : value) list.push_back(to_json(item));
    return list;
  } else if constexpr (kIsPair<T>) {
    return Json::array({to_json(value.first), to_json(value.second)});
  } else {
    Json list = Json::array();
    std::apply([&](const auto&... member) { (list.push_back(to_json(member)), ...); }, members(value));
    return list;
  }
}

template <class T>
bool read_integer(const Json& json, T& value) {
  if (!json.is_number_integer()) return false;
  if (json.is_number_unsigned() && !std::in_range<std::int64_t>(json.get<std::uint64_t>())) return false;
  const auto number = json.get<std::int64_t>();
  if (!std::in_range<T>(number)) return false;
  value = static_cast<T>(number);
  return true;
}

inline bool read_real(const Json& json, double& value) {
  if (json.is_number()) {
    value = json.get<double>();
    return true;
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  value = json == "inf" ? kInfinity : json == "-inf" ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
  return json == "inf" || json == "-inf" || json == "nan";
}

/// False where the JSON is no value of this type; what was read of it until then stays.
template <class T>
bool from_json(const Json& json, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    if (json.is_boolean()) value = json.get<bool>();
    return json.is_boolean();
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, SharedText>) {
    if (json.is_string()) value = json.get<std::string>();
    return json.is_string();
  } else if constexpr (std::is_integral_v<T>) {
    return read_integer(json, value);
  } else if constexpr (std::is_enum_v<T>) {
    int number = 0;
    if (!read_integer(json, number) || number < 0 || number > static_cast<int>(last_of(T{}))) return false;
    value = static_cast<T>(number);
    return true;
  } else if constexpr (std::is_floating_point_v<T>) {
    return read_real(json, value);
  } else if constexpr (kIsQuantity<T>) {
    typename T::rep number{};
    if (!from_json(json, number)) return false;
    value = T(number);
    return true;
  } else if constexpr (kIsOptional<T>) {
    if (!json.is_array() || json.size() > 1) return false;
    value.reset();
    return json.empty() || from_json(json[0], value.emplace());
  } else if constexpr (kIsList<T>) {
    if (!json.is_array()) return false;
    value.resize(json.size());
    for (std::size_t i = 0; i < json.size(); ++i) {
      if (!from_json(json[i], value[i])) return false;
    }
    return true;
  } else if constexpr (kIsPair<T>) {
    return json.is_array() && json.size() == 2 && from_json(json[0], value.first) && from_json(json[1], value.second);
  } else {
    auto all = members(value);
    if (!json.is_array() || json.size() != std::tuple_size_v<decltype(all)>) return false;
    std::size_t i = 0;
    return std::apply([&](auto&... member) { return (from_json(json[i++], member) && ...); }, all);
  }
}

}  // namespace tangram::planner::search_cache
