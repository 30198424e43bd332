#include <algorithm>
#include <string_view>

#include "blueprint.hpp"

namespace tangram::model {

namespace {

constexpr std::string_view kEnding = "-wide";

bool is_wide(const WideLayers& wide, const BlockRange& decoder, int block) {
  if (block < decoder.first || block >= decoder.last) return false;
  return block - decoder.first < wide.first || decoder.last - block <= wide.last;
}

BlockType with_width(BlockType type, bool wide) {
  type.wide = wide;
  if (wide && !type.name.ends_with(kEnding)) type.name += kEnding;
  return type;
}

}  // namespace

std::optional<Job> own_job(const BlockType& block, const Job& job) {
  if (!block.wide || !is_narrow(job.precision)) return std::nullopt;
  Job own = job;
  own.precision = DType::kBf16;
  return own;
}

bool has_wide_layers(const Job& job) { return is_narrow(job.precision) && job.wide_layers != WideLayers{}; }

void set_wide_layers(Model& model) {
  const WideLayers wide = has_wide_layers(model.job) ? model.job.wide_layers : WideLayers{};
  const bool had = std::ranges::any_of(model.types, &BlockType::wide);
  if (wide == WideLayers{} && !had) return;
  const BlockRange decoder = language_blocks(model);
  change_types(model, [&](const BlockType& type, int b) { return with_width(type, is_wide(wide, decoder, b)); });
}

}  // namespace tangram::model
