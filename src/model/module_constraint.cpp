#include "tangram/model/module_constraint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "tangram/base/problem.hpp"
#include "tangram/base/spelling.hpp"
#include "tangram/io/limits.hpp"

namespace tangram::model {

namespace {

constexpr const char* kExample = "write it as vision:tp=2,gpus=A100+H100,language:tp=8";

Diagnostics mistake(std::string message, std::string hint = kExample) {
  return {problem(ErrorKind::kUsage, "bad-value", std::move(message), std::move(hint))};
}

std::vector<std::string> divided(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (std::size_t end = text.find(at); end != std::string_view::npos; end = text.find(at)) {
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.emplace_back(text);
  return parts;
}

std::optional<int> degree_of(std::string_view text) {
  const auto range = io::integer_limit("tp");
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value >= range.min && value <= range.max ? std::optional(value) : std::nullopt;
}

Diagnostics unknown(std::string_view key) {
  std::vector<std::string> known;
  for (const FixedDegree& degree : kFixedDegrees) known.emplace_back(degree.name);
  known.emplace_back("gpus");
  const auto near = closest(key, known);
  return mistake(fmt::format("nothing called \"{}\" can be fixed of a module", key),
                 near ? fmt::format("did you mean \"{}\"?", *near) : fmt::format("fix {}", fmt::join(known, ", ")));
}

/// "tp=2".
Expected<void> set_one(ModuleConstraint& constraint, std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return fail(mistake(fmt::format("\"{}\" has no \"=\"", word)));
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  if (key == "gpus") {
    constraint.gpus = divided(value, '+');
    if (std::ranges::none_of(constraint.gpus, &std::string::empty)) return {};
    return fail(mistake("a GPU type has no name"));
  }
  const auto* const degree = std::ranges::find(kFixedDegrees, key, &FixedDegree::name);
  if (degree == kFixedDegrees.end()) return fail(unknown(key));
  const auto read = degree_of(value);
  if (!read) return fail(mistake(fmt::format("{} \"{}\" is no degree", key, value), "it is a whole number from 1"));
  constraint.*degree->value = *read;
  return {};
}

}  // namespace

bool ModuleConstraint::allows(std::string_view gpu_type) const {
  return gpus.empty() ||
         std::ranges::any_of(gpus, [&](const std::string& name) { return names_gpu_type(name, gpu_type); });
}

bool names_gpu_type(std::string_view name, std::string_view gpu_type) {
  return gpu_type.starts_with(name) && (gpu_type.size() == name.size() || gpu_type[name.size()] == '-');
}

Expected<std::vector<NamedConstraint>> read_constraints(std::span<const std::string> words) {
  std::vector<NamedConstraint> all;
  for (std::string_view word : words) {
    if (const std::size_t colon = word.find(':'); colon != std::string_view::npos) {
      all.push_back({std::string(word.substr(0, colon)), {}});
      word.remove_prefix(colon + 1);
    }
    if (all.empty()) return fail(mistake(fmt::format("\"{}\" is of no module", word)));
    if (auto set = set_one(all.back().constraint, word); !set) return fail(std::move(set.error()));
  }
  return all;
}

std::string to_string(const ModuleConstraint& constraint) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : kFixedDegrees) {
    if (constraint.*value > 0) parts.push_back(fmt::format("{} {}", name, constraint.*value));
  }
  if (!constraint.gpus.empty()) parts.push_back(fmt::format("on {}", fmt::join(constraint.gpus, " or ")));
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string to_string(const NamedConstraint& named) {
  return fmt::format("{}: {}", named.module, to_string(named.constraint));
}

}  // namespace tangram::model
