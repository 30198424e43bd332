#include "tangram/model/techniques.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tangram/base/spelling.hpp"

namespace tangram::model {

namespace {

using T = Techniques;

constexpr std::array<TechniqueName, 17> kNames{{
    {"tp", {&T::tp}},
    {"sp", {&T::sp}},
    {"cp", {&T::cp}},
    {"ep", {&T::ep}},
    {"dp", {&T::dp}},
    {"zero1", {&T::zero1}},
    {"zero2", {&T::zero2}},
    {"zero3", {&T::zero3}},
    {"recompute_selective", {&T::recompute_selective}},
    {"recompute_full", {&T::recompute_full}},
    {"mixed_stages", {&T::mixed_stages}},
    {"replicas", {&T::replicas}},
    {"pipeline", {&T::pipeline}},
    {"interleaving", {&T::interleaving}},
    {"zero_bubble", {&T::zero_bubble}},
    {"zero", {&T::zero1, &T::zero2, &T::zero3}},
    {"recompute", {&T::recompute_selective, &T::recompute_full}},
}};

/// Shorter words of people for names above.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kShort{
    {{"pp", "pipeline"}, {"mixed", "mixed_stages"}}};

}  // namespace

std::span<const TechniqueName> technique_names() { return kNames; }

bool set_technique(Techniques& techniques, std::string_view name, bool allowed) {
  std::string key(name);
  std::replace(key.begin(), key.end(), '-', '_');
  for (const auto& [word, meant] : kShort) {
    if (key == word) key = meant;
  }
  const auto* found = std::find_if(kNames.begin(), kNames.end(), [&](const TechniqueName& n) { return n.name == key; });
  if (found == kNames.end()) return false;
  for (bool Techniques::* flag : found->flags) {
    if (flag != nullptr) techniques.*flag = allowed;
  }
  return true;
}

Techniques no_techniques() {
  Techniques none;
  for (const TechniqueName& name : kNames) none.*name.flags[0] = false;
  return none;
}

std::string technique_hint(std::string_view name) {
  std::vector<std::string> known;
  known.reserve(kNames.size());
  for (const TechniqueName& n : kNames) known.emplace_back(n.name);
  if (const auto near = closest(name, known)) return fmt::format("did you mean \"{}\"?", *near);
  return fmt::format("known techniques: {}", fmt::join(known, ", "));
}

}  // namespace tangram::model
