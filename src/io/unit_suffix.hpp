// Units at the end of keys: `memory_gib`, `bandwidth_gb_s`, `latency_us`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tangram::io {

/// A key cut in front of its unit; `unit` is empty when the key has none.
struct UnitKey {
  std::string_view stem;
  std::string_view unit;  ///< as a person writes it: "GiB", "Gbit/s"
};

[[nodiscard]] UnitKey split_unit(std::string_view key);

/// The candidate that equals `key` but for the unit, which it must have; nullopt if there is none.
[[nodiscard]] std::optional<std::string> same_but_for_unit(std::string_view key,
                                                           std::span<const std::string> candidates);

}  // namespace tangram::io
