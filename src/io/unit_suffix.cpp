#include "unit_suffix.hpp"

#include <array>

namespace tangram::io {

namespace {

struct Unit {
  std::string_view suffix;
  std::string_view name;
};

constexpr std::array kUnits{
    Unit{"bytes", "bytes"},
    Unit{"b", "bytes"},
    Unit{"kb", "kB"},
    Unit{"mb", "MB"},
    Unit{"gb", "GB"},
    Unit{"tb", "TB"},
    Unit{"kib", "KiB"},
    Unit{"mib", "MiB"},
    Unit{"gib", "GiB"},
    Unit{"tib", "TiB"},
    Unit{"b_s", "bytes/s"},
    Unit{"bytes_s", "bytes/s"},
    Unit{"kb_s", "kB/s"},
    Unit{"mb_s", "MB/s"},
    Unit{"gb_s", "GB/s"},
    Unit{"tb_s", "TB/s"},
    Unit{"mib_s", "MiB/s"},
    Unit{"gib_s", "GiB/s"},
    Unit{"tib_s", "TiB/s"},
    Unit{"mbit_s", "Mbit/s"},
    Unit{"gbit_s", "Gbit/s"},
    Unit{"tbit_s", "Tbit/s"},
    Unit{"mbps", "Mbit/s"},
    Unit{"gbps", "Gbit/s"},
    Unit{"tbps", "Tbit/s"},
    Unit{"gbs", "GB/s"},
    Unit{"gflops", "GFLOP/s"},
    Unit{"tflops", "TFLOP/s"},
    Unit{"pflops", "PFLOP/s"},
    Unit{"flops", "FLOP/s"},
    Unit{"ns", "nanoseconds"},
    Unit{"us", "microseconds"},
    Unit{"ms", "milliseconds"},
    Unit{"s", "seconds"},
    Unit{"sec", "seconds"},
    Unit{"min", "minutes"},
    Unit{"h", "hours"},
    Unit{"w", "W"},
    Unit{"kw", "kW"},
    Unit{"samples", "samples"},
    Unit{"tokens", "tokens"},
    Unit{"usd_per_hour", "US dollars per hour"},
    Unit{"usd_per_h", "US dollars per hour"},
    Unit{"usd_h", "US dollars per hour"},
    Unit{"eur_per_hour", "euros per hour"},
};

}  // namespace

UnitKey split_unit(std::string_view key) {
  UnitKey result{key, {}};
  for (const Unit& unit : kUnits) {
    if (key.size() <= unit.suffix.size() + 1 || !key.ends_with(unit.suffix)) continue;
    const std::string_view stem = key.substr(0, key.size() - unit.suffix.size() - 1);
    // The longest suffix leaves the shortest stem: "gb_s" over "s".
    if (key[stem.size()] == '_' && stem.size() < result.stem.size()) result = {stem, unit.name};
  }
  return result;
}

std::optional<std::string> same_but_for_unit(std::string_view key, std::span<const std::string> candidates) {
  const UnitKey given = split_unit(key);
  for (const std::string& candidate : candidates) {
    const UnitKey known = split_unit(candidate);
    if (candidate != key && !known.unit.empty() && known.stem == given.stem) return candidate;
  }
  return std::nullopt;
}

}  // namespace tangram::io
