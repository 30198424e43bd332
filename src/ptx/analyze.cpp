#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "entry.hpp"
#include "inline_calls.hpp"
#include "provenance.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/base/spelling.hpp"
#include "tangram/ptx/analysis.hpp"

namespace tangram::ptx {
namespace {

void mark(ParameterUse& use, const Access& access) {
  use.reads = use.reads || access.effect == Effect::kRead;
  use.writes = use.writes || access.effect == Effect::kWrite;
  use.updates = use.updates || access.effect == Effect::kUpdate;
  use.indirect = use.indirect || access.indirect;
}

std::string name_of(const Function& entry, const Base& base) {
  const std::string& name = entry.parameter(base.index).name;
  return base.offset > 0 ? fmt::format("{}+{}", name, base.offset) : name;
}

}  // namespace

std::string_view to_string(Effect effect) {
  switch (effect) {
    case Effect::kRead: return "read";
    case Effect::kWrite: return "write";
    case Effect::kUpdate: return "update";
  }
  return "read";
}

Expected<const Function*> find_entry(const Module& module, const std::string& name) {
  const Function* entry = module.find(name);
  if (entry != nullptr && entry->is_entry && entry->has_body) return entry;
  const std::vector<std::string> entries = module.entries();
  const auto near = closest(name, entries);
  Diagnostic diagnostic = problem(ErrorKind::kInput, "unknown-entry", fmt::format("there is no entry \"{}\"", name),
                                  near              ? fmt::format("did you mean \"{}\"?", *near)
                                  : entries.empty() ? "the module has no entries at all"
                                                    : fmt::format("entries: {}", fmt::join(entries, ", ")));
  diagnostic.where.file = module.file;
  return fail(std::move(diagnostic));
}

Expected<EntryAnalysis> analyze(const Module& module, const std::string& name) {
  const auto entry = find_entry(module, name);
  if (!entry) return fail(entry.error());
  Provenance found = provenance_of(module, inline_calls(module, **entry));
  EntryAnalysis analysis;
  analysis.entry = name;
  std::map<Base, ParameterUse> uses;
  std::set<std::string> variables;
  for (const Access& access : found.accesses) {
    for (const Base& base : access.bases) {
      if (base.kind == BaseKind::kVariable) {
        const Variable& variable = at(module.variables, base.index);
        if (variable.space != Space::kConst) variables.insert(variable.name);
      }
      if (base.kind != BaseKind::kParameter && base.kind != BaseKind::kTensorMap) continue;
      Base key{BaseKind::kParameter, base.index, base.offset};
      ParameterUse& use = uses[key];
      use.base = base;
      use.name = name_of(**entry, base);
      mark(use, access);
    }
  }
  for (auto& [base, use] : uses) analysis.parameters.push_back(std::move(use));
  analysis.accesses = std::move(found.accesses);
  analysis.variables.assign(variables.begin(), variables.end());
  analysis.pinned = std::move(found.pinned);
  return analysis;
}

}  // namespace tangram::ptx
