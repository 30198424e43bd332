#include <fmt/format.h>

#include <algorithm>

#include "infer.hpp"
#include "reason.hpp"

namespace tangram::accuracy {

Expected<void> check_printed_dims(const ModelFacts& facts, const model::Model& model) {
  const PrintedDims& printed = facts.dims;
  const auto expert = std::ranges::find_if(model.types, [](const auto& type) { return type.feed_forward.is_moe(); });
  const model::FeedForward feed_forward = expert == model.types.end() ? model::FeedForward{} : expert->feed_forward;
  struct Compared {
    const char* what;
    std::int64_t published;
    std::int64_t known;
  };
  for (const auto& [what, published, known] :
       {Compared{"hidden", printed.hidden, model.hidden}, Compared{"layers", printed.layers, model.block_count()},
        Compared{"experts", printed.experts, feed_forward.experts},
        Compared{"top_k", printed.experts_per_token, feed_forward.experts_per_token}}) {
    if (published == 0 || published == known) continue;
    return fail(reason(fmt::format("{} of \"{}\" are printed as {}, and are {} in configs/models", what, facts.name,
                                   published, known)));
  }
  return {};
}

}  // namespace tangram::accuracy
