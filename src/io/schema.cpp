#include "tangram/io/schema.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "tangram/base/spelling.hpp"

namespace tangram::io {

namespace {

constexpr std::string_view kPrefix = "tangram.";

/// What people call the files they write and keep; the rest is what --json prints.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kKinds{
    {{"cluster", "a fleet"},
     {"model", "a model"},
     {"profile", "a profile"},
     {"timings", "timings of a run"},
     {"launch_plan", "a launch plan"},
     {"kernels", "a kernel graph"},
     {"operator_times", "times of an operator"},
     {"gpus", "a catalogue of GPU types"},
     {"measurements", "measurements"},
     {"serving_measurements", "measurements of serving"},
     {"parallelizer", "a plugin's manifest"}}};

/// "cluster" of "tangram.cluster/1"; empty where it is nothing of ours.
std::string_view kind_of(std::string_view schema) {
  if (!schema.starts_with(kPrefix)) return {};
  return schema.substr(kPrefix.size(), schema.find('/') - kPrefix.size());
}

std::string called(std::string_view kind) {
  for (const auto& [name, words] : kKinds) {
    if (name == kind) return std::string(words);
  }
  return fmt::format("what a command printed (\"{}\")", kind);
}

bool is_misspelt(std::string_view kind, std::string_view wanted) {
  const std::array<std::string, 1> candidates{std::string(wanted)};
  return closest(kind, candidates).has_value();
}

}  // namespace

bool has_schema(ObjectReader& reader, std::string_view wanted) {
  const std::string schema = reader.string("schema");
  if (schema.empty() || schema == wanted) return true;
  const std::string_view kind = kind_of(schema);
  const bool other_kind = !kind.empty() && !is_misspelt(kind, kind_of(wanted));
  if (other_kind) {
    reader.error_at("schema", "wrong-kind", fmt::format("this is {}, not {}", called(kind), called(kind_of(wanted))),
                    fmt::format("\"{}\" is wanted here", wanted));
    return false;
  }
  reader.error_at("schema", "unknown-schema", fmt::format("unknown schema \"{}\"", schema),
                  fmt::format("this program reads \"{}\"", wanted));
  return true;
}

}  // namespace tangram::io
