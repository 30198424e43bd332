#include "layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "limits.hpp"

namespace tangram::importing {

namespace {

constexpr const char* kChunks = "num-virtual-stages-per-pipeline-rank";
constexpr const char* kLayersOfChunk = "num-layers-per-virtual-pipeline-stage";
constexpr const char* kFirstLayers = "decoder-first-pipeline-num-layers";
constexpr const char* kLastLayers = "decoder-last-pipeline-num-layers";
constexpr const char* kGroup = "microbatch-group-size-per-virtual-pipeline-stage";

constexpr std::size_t kMostCharacters = kMostLayers;

/// The grammar of megatron/core/transformer/pipeline_parallel_layer_layout.py: E, t, m, L and | as they are; x*n
/// repeats a character, (...)*n a group without groups inside; commas mean nothing.
class Layout {
 public:
  explicit Layout(const std::string& text) : text_(text) {}

  /// All characters written out; or what is wrong.
  bool expand(std::string& out, std::string& mistake) {
    const bool good = items(out, false);
    mistake = mistake_;
    return good;
  }

 private:
  bool items(std::string& out, bool inside) {
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == ',') continue;
      if (c == ')' && inside) return true;
      std::string item(1, c);
      if (c == '(' && !inside) {
        item.clear();
        if (!items(item, true)) return false;
        if (text_[at_ - 1] != ')') return fail("a group is not closed");
      } else if (std::string_view("EtmL|").find(c) == std::string_view::npos) {
        return fail(fmt::format("\"{}\" is none of E, t, m, L and |", c));
      }
      std::size_t times = 1;
      if (!repetition(times)) return false;
      if (out.size() + item.size() * times > kMostCharacters) return fail("it is too long");
      for (std::size_t i = 0; i < times; ++i) out += item;
    }
    return !inside || fail("a group is not closed");
  }

  bool repetition(std::size_t& times) {
    if (at_ >= text_.size() || text_[at_] != '*') return true;
    const char* first = text_.data() + at_ + 1;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), times);
    if (error != std::errc() || times > kMostCharacters) return fail("a number has to follow *");
    at_ = static_cast<std::size_t>(end - text_.data());
    return true;
  }

  bool fail(std::string why) {
    mistake_ = std::move(why);
    return false;
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::string mistake_;
};

/// Layers of each segment between bars.
std::vector<std::int64_t> segments(const std::string& layout) {
  std::vector<std::int64_t> layers(1, 0);
  for (const char c : layout) {
    if (c == '|') layers.push_back(0);
    if (c == 't') ++layers.back();
  }
  return layers;
}

std::vector<std::int64_t> written_out(ArgumentMap& arguments, std::int64_t stages) {
  std::string characters;
  std::string mistake;
  const std::string text = arguments.find(kLayout)->value;
  const auto wrong = [&](const std::string& message, const std::string& hint) {
    arguments.error_at(kLayout, "bad-layout", message, hint);
    return std::vector<std::int64_t>{};
  };
  const std::string example = "as in Et*12|t*11|t*6|t*3,L";
  if (!Layout(text).expand(characters, mistake)) return wrong("the layout cannot be read: " + mistake, example);
  if (characters.find('m') != std::string::npos) {
    return wrong("the layout has layers of multi-token prediction (m)", "a launch plan has none");
  }
  const bool ends = characters.starts_with('E') && characters.ends_with('L') &&
                    std::ranges::count(characters, 'E') == 1 && std::ranges::count(characters, 'L') == 1;
  if (!ends) return wrong("a layout begins with its only E and ends with its only L", example);
  auto layers = segments(characters);
  if (std::ssize(layers) % stages != 0) {
    return wrong(fmt::format("the layout has {} segments for {} stages", layers.size(), stages),
                 "one for each model chunk of each stage");
  }
  return layers;
}

/// Layers of the first or last stage where a flag of its own says so; -1: it does not.
std::int64_t own_layers(ArgumentMap& arguments, const std::string& name) {
  return arguments.has(name) ? arguments.count_or(name, 1) : -1;
}

/// Layers of each stage of an even split; embedding and loss count as one each where flags say so.
std::vector<std::int64_t> even_split(ArgumentMap& arguments, std::int64_t stages, std::int64_t ends) {
  const std::int64_t first = own_layers(arguments, kFirstLayers);
  const std::int64_t last = own_layers(arguments, kLastLayers);
  const std::int64_t all = arguments.count("num-layers") + ends;
  const std::int64_t rest = all - std::max<std::int64_t>(first, 0) - std::max<std::int64_t>(last, 0);
  const std::int64_t others = stages - (first >= 0 ? 1 : 0) - (last >= 0 ? 1 : 0);
  if (rest < 0 || others < 0 || (others == 0 ? rest != 0 : rest % others != 0)) {
    arguments.error_at("num-layers", "layers-do-not-divide",
                       fmt::format("{} layers cannot be split evenly over {} stages", rest, others),
                       "a --pipeline-model-parallel-layout says which stage has which");
    return {};
  }
  std::vector<std::int64_t> layers(static_cast<std::size_t>(stages), others == 0 ? 0 : rest / others);
  if (first >= 0) layers.front() = first;
  if (last >= 0) layers.back() = last;
  return layers;
}

/// Of each stage; 0: the flags do not go with these layers.
std::int64_t chunks_of(ArgumentMap& arguments, const std::vector<std::int64_t>& of_stages) {
  if (arguments.has(kChunks)) return arguments.count(kChunks);
  if (!arguments.has(kLayersOfChunk)) return 1;
  const std::int64_t of_chunk = arguments.count(kLayersOfChunk);
  return of_chunk > 0 && of_stages.front() % of_chunk == 0 ? of_stages.front() / of_chunk : 0;
}

/// Every stage's layers in equal chunks, as transformer_config.py and transformer_block.py of Megatron-LM split them.
std::vector<std::int64_t> even_chunks(ArgumentMap& arguments, std::int64_t stages) {
  const std::int64_t before = arguments.has("account-for-embedding-in-pipeline-split") ? 1 : 0;
  const std::int64_t behind = arguments.has("account-for-loss-in-pipeline-split") ? 1 : 0;
  const std::vector<std::int64_t> of_stages = even_split(arguments, stages, before + behind);
  if (of_stages.empty()) return {};
  const std::int64_t chunks = chunks_of(arguments, of_stages);
  const bool divide = chunks > 0 && std::ranges::all_of(of_stages, [&](std::int64_t n) { return n % chunks == 0; });
  if (!divide) {
    arguments.error_at(arguments.has(kChunks) ? kChunks : kLayersOfChunk, "layers-do-not-divide",
                       "the layers of every stage cannot be split evenly over such model chunks",
                       "a --pipeline-model-parallel-layout says which chunk has which");
    return {};
  }
  std::vector<std::int64_t> layers;
  for (std::int64_t c = 0; c < chunks; ++c) {
    for (const std::int64_t of_stage : of_stages) layers.push_back(of_stage / chunks);
  }
  layers.front() -= before;
  layers.back() -= behind;
  return layers;
}

/// What Megatron-LM's validate_args (megatron/training/arguments.py) refuses.
void refuse_contradictions(ArgumentMap& arguments, std::int64_t stages) {
  std::vector<std::string> given;
  for (const char* name : {kLayout, kChunks, kLayersOfChunk}) {
    if (arguments.has(name)) given.emplace_back(name);
  }
  if (given.size() > 1) {
    arguments.error_at(given.back(), "contradiction",
                       fmt::format("--{} beside --{}: Megatron-LM takes one of them", given.back(), given.front()),
                       "the layout is enough where there is one");
  }
  for (const char* name : {kFirstLayers, kLastLayers}) {
    if (!arguments.has(name) || !arguments.has(kLayersOfChunk)) continue;
    arguments.error_at(name, "contradiction", fmt::format("--{} beside --{}", name, kLayersOfChunk),
                       fmt::format("Megatron-LM asks for --{} where stages are unlike", kChunks));
  }
  const bool has_chunks = arguments.has(kChunks) || arguments.has(kLayersOfChunk);
  if (has_chunks && stages == 2 && arguments.has(kNoOverlap)) {
    arguments.error_at(kNoOverlap, "contradiction",
                       "chunks are interleaved over two stages only where transfers overlap");
  }
}

}  // namespace

std::vector<std::int64_t> layers_per_chunk(ArgumentMap& arguments, std::int64_t stages) {
  refuse_contradictions(arguments, stages);
  auto layers = arguments.has(kLayout) ? written_out(arguments, stages) : even_chunks(arguments, stages);
  if (stages == 1 && layers.size() > 1) {
    arguments.error_at(arguments.has(kLayout) ? kLayout : "pipeline-model-parallel-size", "one-stage",
                       "a stage has several model chunks, but there is one stage alone",
                       "chunks are interleaved between two stages or more");
  }
  return layers;
}

std::int64_t microbatch_group(ArgumentMap& arguments, std::int64_t stages) {
  return arguments.count_or(kGroup, stages);
}

}  // namespace tangram::importing
