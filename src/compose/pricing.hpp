// From partial plans to a program in plain numbers. Goes in: a level, its shares, the store, R and b. Comes out: the
// program with everything priced that crosses islands, and what its options and candidates stand for.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "frontier_store.hpp"
#include "settings.hpp"
#include "space.hpp"
#include "tangram/chain/program.hpp"
#include "tangram/compose/composition.hpp"
#include "tangram/compose/links.hpp"

namespace tangram::compose {

struct OptionPart {
  Placement placement;
  int samples = 0;
  int entry = 0;  ///< of the store
  /// GPUs of a member that this stage takes together with the stages right behind it; its own: it is with none.
  int run = 0;

  [[nodiscard]] bool is_with_next() const { return run > placement.gpus; }
};

struct PricedProgram {
  Setting setting;
  std::vector<ClassShare> shares;
  chain::Program program;
  std::vector<std::vector<OptionPart>> parts;  ///< [option]
  /// [option * signatures + signature][candidate.source]: partial plan of each part in the store (-1: no such part)
  std::vector<std::vector<std::array<int, 2>>> sources;
};

/// Options of a setting: every shape of every class, alone or in a member with the stages behind it (ClassShare::runs),
/// and mixed stages of two classes where allowed. Their entries are
/// wanted from the store; mixed stages need one-block times to split the samples, so `store` must have been asked for
/// the single shapes before options with `mixed` are made.
[[nodiscard]] std::vector<std::vector<OptionPart>> single_options(const cluster::IslandLevel& level,
                                                                  const std::vector<ClassShare>& shares,
                                                                  std::int64_t microbatch, std::int64_t slowest,
                                                                  FrontierStore& store);

/// Mixed stages: pairs of shapes of different classes, samples split in proportion to the speed of one block, rounded
/// to eighths of the microbatch; pairs more than 8 times apart in speed are left out. At most `most` pairs, those with
/// the most GPUs first.
[[nodiscard]] std::vector<std::vector<OptionPart>> mixed_options(const cluster::IslandLevel& level,
                                                                 const std::vector<std::vector<OptionPart>>& singles,
                                                                 std::int64_t microbatch, std::int64_t slowest,
                                                                 FrontierStore& store, std::size_t most);

/// The program with frontiers reduced to (T, n_max): enough for root_bound, and much cheaper than the whole.
[[nodiscard]] PricedProgram relaxed_program(const model::Model& model, const cluster::IslandLevel& level,
                                            const std::vector<ClassShare>& shares, const Setting& setting,
                                            std::vector<std::vector<OptionPart>> options,
                                            const SignatureTable& signatures, const FrontierStore& store);

/// The whole frontier of one key of a relaxed program; notes in `priced.sources` what its candidates stand for.
[[nodiscard]] std::vector<prune::Candidate> price_frontier(PricedProgram& priced, int option, int signature,
                                                           const model::Model& model, const cluster::IslandLevel& level,
                                                           const SignatureTable& signatures,
                                                           const FrontierStore& store);

/// What the semantics of a runtime ask of a program.
void follow(const runtime::Semantics& semantics, chain::Program& program);

/// A chain of the program in terms of classes and partial plans.
[[nodiscard]] Composition to_composition(const model::Model& model, const cluster::IslandLevel& level,
                                         const PricedProgram& priced, const SignatureTable& signatures,
                                         const FrontierStore& store, const chain::Chain& chain);

}  // namespace tangram::compose
