#include <fmt/format.h>

#include <charconv>

#include "read_modules.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/base/spelling.hpp"

namespace tangram::model {

namespace {

/// What an adapter can stand beside, for someone who wrote another name.
std::string target_hint(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& [target, _] : kAdapterTargets) known.emplace_back(target);
  if (const auto near = closest(name, known)) return fmt::format("did you mean \"{}\"?", *near);
  return fmt::format("known matrices: {}", fmt::join(known, ", "));
}

std::pair<std::string_view, BaseQuantization> named(BaseQuantization quantization) {
  return {to_string(quantization), quantization};
}

}  // namespace

// The keys are those of PEFT's LoraConfig, but for what holds the base, which is another library's.
Adapters read_adapters(io::ObjectReader& lora) {
  Adapters adapters;
  adapters.rank = lora.integer("r", io::integer_limit("r"));
  adapters.alpha = lora.integer_or("lora_alpha", adapters.rank, io::integer_limit("lora_alpha"));
  for (const std::string& name : lora.strings_if("target_modules")) {
    if (const auto target = target_called(name)) {
      adapters.targets.add(*target);
    } else {
      report_item(lora, "target_modules", name, fmt::format("unknown matrix \"{}\"", name), target_hint(name));
    }
  }
  adapters.base = lora.choice_or<BaseQuantization>(
      "base_quantization", BaseQuantization::kNone,
      {named(BaseQuantization::kNone), named(BaseQuantization::kNf4), named(BaseQuantization::kNf4Double)});
  lora.finish();
  return adapters;
}

Expected<Adapters> read_adapters(std::span<const std::string> words) {
  constexpr io::IntegerRange kRank = io::integer_limit("r");
  const auto mistake = [](std::string message, std::string hint) {
    return fail(problem(ErrorKind::kUsage, "bad-value", std::move(message), std::move(hint)));
  };
  Adapters adapters;
  const std::string rank = words.empty() ? "" : words.front();
  const auto [end, error] = std::from_chars(rank.data(), rank.data() + rank.size(), adapters.rank);
  if (error != std::errc() || end != rank.data() + rank.size() || adapters.rank < kRank.min ||
      adapters.rank > kRank.max) {
    return mistake(fmt::format("\"{}\" is no rank between {} and {}", rank, kRank.min, kRank.max),
                   "write it as 16, or with the matrices as 16,q_proj,v_proj");
  }
  adapters.alpha = adapters.rank;
  for (const std::string& name : words.subspan(1)) {
    const auto target = target_called(name);
    if (!target) return mistake(fmt::format("unknown matrix \"{}\"", name), target_hint(name));
    adapters.targets.add(*target);
  }
  return adapters;
}

}  // namespace tangram::model
