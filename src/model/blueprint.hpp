// What a model file or a Hugging Face config says before the training job is known, and how it becomes a Model.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/io/limits.hpp"
#include "tangram/io/reader.hpp"
#include "tangram/model/model.hpp"

namespace tangram::model {

struct Blueprint {
  Model frame;                     ///< everything but types, blocks and job; of the graph what files say
  std::vector<BlockType> chain;    ///< every block, first to last; tokens 0: the sequence length; no name: chosen later
  std::int64_t max_positions = 0;  ///< longest sequence the model was made for; 0: not said
  std::vector<std::string> assumed;        ///< what a Hugging Face config leaves out, and what was taken
  std::vector<std::string> assumed_items;  ///< the same of what samples have, by encoder; "": `data` says it
};

/// All that was taken, in the order in which people are told.
[[nodiscard]] std::vector<std::string> assumptions(const Blueprint& blueprint);

/// Reads the `architecture` section. Mistakes go to the reader's sink.
[[nodiscard]] Blueprint read_architecture(io::ObjectReader& reader);

/// Reads a Hugging Face config. Mistakes go to the sink.
[[nodiscard]] Blueprint import_hf(const io::Document& document, Diagnostics& sink);

/// Reads the `training` section; overrides replace its values.
[[nodiscard]] Job read_job(io::ObjectReader& reader, const JobOverrides& overrides);

/// The job of a model that comes without one: see read_model.cpp.
[[nodiscard]] Job default_job(const Blueprint& blueprint, const JobOverrides& overrides);

/// Why the job cannot train the blueprint, for a person; empty: it can. `key` is the key of `training` at fault.
struct Conflict {
  std::string_view key;
  std::string message;
  std::string hint;
};
[[nodiscard]] std::vector<Conflict> conflicts(const Blueprint& blueprint, const Job& job);

/// The index of a block type: of its equal, else it is added, under a name of its own.
int add_type(std::vector<BlockType>& types, BlockType block);

/// Gives each block the type that `change` makes of its own and its number; equal ones are one.
template <class Change>
void change_types(Model& model, const Change& change) {
  std::vector<BlockType> types;
  for (int b = 0; b < model.block_count(); ++b) {
    at(model.blocks, b) = add_type(types, change(model.block(b), b));
  }
  model.types = std::move(types);
}

/// Puts both together: token counts, block types merged and named, digest. Requires conflicts() to be empty.
[[nodiscard]] Model assemble(Blueprint blueprint, Job job);

/// Says each at its key.
void report(io::ObjectReader& at_fault, const std::vector<Conflict>& conflicts);

/// An item of the list at `key` that nobody knows.
void report_item(io::ObjectReader& reader, std::string_view key, const std::string& item, const std::string& what,
                 const std::string& hint);

/// Reports at `key` unless `value` is a positive multiple of `divisor`; true when it is.
bool require_multiple(io::ObjectReader& reader, std::string_view key, std::int64_t value, std::string_view divisor_key,
                      std::int64_t divisor, std::string hint = {});

// Of a mixture of experts. Reports at these keys what cannot be chosen from.
struct GroupKeys {
  std::string_view groups;
  std::string_view chosen;
};
void check_expert_groups(io::ObjectReader& reader, const GroupKeys& keys, const FeedForward& experts);

// The largest values that are taken for real. Products of them stay far inside 64 bits; the sum over all blocks is
// checked by conflicts().
inline constexpr io::IntegerRange kLayers = io::integer_limit("layers");
inline constexpr io::IntegerRange kHeads = io::integer_limit("heads");
inline constexpr io::IntegerRange kHeadDim = io::integer_limit("head_dim");
inline constexpr io::IntegerRange kWidth = io::integer_limit("hidden");
inline constexpr io::IntegerRange kInner = io::integer_limit("ffn_hidden");
inline constexpr io::IntegerRange kExperts = io::integer_limit("experts");
inline constexpr io::IntegerRange kTokens = io::integer_limit("sequence_length");
inline constexpr io::IntegerRange kOptionalTokens = io::integer_limit("sliding_window");
inline constexpr double kMaxParameters = 1e15;

}  // namespace tangram::model
