#include "tangram/export/export.hpp"

#include <algorithm>
#include <array>

#include "formats.hpp"
#include "tangram/base/assert.hpp"
#include "tangram/plan/check.hpp"

namespace tangram::exporting {

namespace {

constexpr std::array kFormats{
    FormatName{"generic", Format::kGeneric},       FormatName{"torch", Format::kTorch},
    FormatName{"megatron", Format::kMegatron},     FormatName{"mimo", Format::kMimo},
    FormatName{"flagscale", Format::kFlagscale},   FormatName{"slurm", Format::kSlurm},
    FormatName{"kubernetes", Format::kKubernetes}, FormatName{"sailor", Format::kSailor},
    FormatName{"flashflex", Format::kFlashflex},   FormatName{"galvatron", Format::kGalvatron}};

/// A file edited by hand may say anything; exporters rely on what check() makes sure of.
Diagnostics violations_of(const plan::LaunchPlan& plan) {
  Diagnostics found;
  for (const plan::Violation& violation : plan::check(plan).violations) {
    Diagnostic diagnostic;
    diagnostic.kind = ErrorKind::kInfeasible;
    diagnostic.code = violation.code;
    diagnostic.message = "the plan does not pass its check: " + violation.where + ": " + violation.message;
    if (found.empty()) diagnostic.hint = "tangram check lists all that does not hold";
    found.push_back(std::move(diagnostic));
  }
  return found;
}

Expected<Export> in_format(const plan::LaunchPlan& plan, Format format, const Options& options) {
  switch (format) {
    case Format::kGeneric: return export_generic(plan);
    case Format::kTorch: return export_torch(plan);
    case Format::kMegatron: return export_megatron(plan);
    case Format::kMimo: return export_mimo(plan);
    case Format::kFlagscale: return export_flagscale(plan);
    case Format::kSlurm: return export_slurm(plan, options);
    case Format::kKubernetes: return export_kubernetes(plan, options);
    case Format::kSailor: return export_sailor(plan);
    case Format::kFlashflex: return export_flashflex(plan);
    case Format::kGalvatron: return export_galvatron(plan);
  }
  TANGRAM_ASSERT(false);
  return Export{};
}

}  // namespace

std::span<const FormatName> format_names() { return kFormats; }

std::string_view to_string(Format format) { return std::ranges::find(kFormats, format, &FormatName::format)->name; }

Expected<Export> export_plan(const plan::LaunchPlan& plan, Format format, const Options& options) {
  if (Diagnostics wrong = violations_of(plan); !wrong.empty()) return fail(std::move(wrong));
  auto out = in_format(plan, format, options);
  if (out) std::ranges::sort(out->files, {}, &File::path);
  return out;
}

}  // namespace tangram::exporting
