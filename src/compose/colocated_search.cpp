#include "colocated_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "encoder_layouts.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/cost/stage.hpp"
#include "tangram/model/split.hpp"
#include "tangram/parallelizer/registry.hpp"
#include "tangram/relax/relaxed_bound.hpp"

namespace tangram::compose {

namespace {

/// Plans of the language model that are placed, of each search.
constexpr int kPlacedPlans = 8;

/// Searches of a case with more memory than the least, where no plan of the one before holds its encoders.
constexpr int kRepeats = 3;

cluster::IslandHierarchy with_reserve(cluster::IslandHierarchy hierarchy, const std::vector<Bytes>& reserve,
                                      Bytes more) {
  // The finest level's classes are those of the encoders' costs; coarser ones have the same devices by name.
  const std::vector<cluster::IslandClass> finest = hierarchy.levels.front().classes;
  for (cluster::IslandLevel& level : hierarchy.levels) {
    for (cluster::IslandClass& c : level.classes) {
      Bytes least = Bytes::max();
      for (std::size_t f = 0; f < finest.size(); ++f) {
        if (finest[f].device.name == c.device.name) least = std::min(least, reserve[f]);
      }
      const Bytes taken = (least == Bytes::max() ? *std::ranges::min_element(reserve) : least) + more;
      c.device.reserved = std::min(c.device.memory, c.device.reserved + taken);
    }
  }
  return hierarchy;
}

/// Seconds in which the whole fleet could do all passes of the encoders' blocks.
double least_encoder_seconds(const model::Model& model, const cluster::IslandLevel& level,
                             const cost::ProfileSet* profiles) {
  double rate = 0;  // batches a second
  for (const cluster::IslandClass& c : level.classes) {
    double seconds = 0;
    for (int i = 0; i < model::encoder_blocks(model); ++i) {
      seconds += cost::least_gpu_seconds(model, model.block(i), c.device, profiles);
    }
    rate += c.gpu_count() / (seconds * static_cast<double>(model.job.global_batch));
  }
  return rate > 0 ? 1 / rate : 0;
}

/// Cases that differ in the layouts of encoders alone, the fastest first.
using Kind = std::vector<EncoderCase>;

std::vector<Kind> kinds_of(std::vector<EncoderCase> cases) {
  std::vector<Kind> kinds;
  for (EncoderCase& one : cases) {
    const auto same = std::ranges::find_if(kinds, [&](const Kind& kind) {
      const EncoderCase& other = kind.front();
      return other.turns == one.turns && other.microbatch == one.microbatch && other.gpu_types == one.gpu_types;
    });
    Kind& kind = same == kinds.end() ? kinds.emplace_back() : *same;
    kind.push_back(std::move(one));
  }
  return kinds;
}

std::vector<std::string> rules_of() {
  return {
      "placement colocated: encoders on all GPUs of the language model, in three phases or, without pipelines, per "
      "microbatch",
      fmt::format("encoders: tp of 1, 2, 4, 8 inside a member, ZeRO-1 over all lanes, recompute none, selective or "
                  "full; per-microbatch turns of 1, 2, 4, ... 64 samples"),
      "no mixed stages"};
}

class ColocatedSearch {
 public:
  ColocatedSearch(const model::Model& model, const cluster::IslandHierarchy& hierarchy, const SearchOptions& options,
                  const ProgressCallback& progress)
      : model_(model),
        hierarchy_(hierarchy),
        options_(options),
        progress_(progress),
        language_(language_job()),
        pricing_(model, options.profiles) {
    options_.timed = false;
    options_.top = std::max(options.top, kPlacedPlans);
    options_.placement = EncoderPlacement::kAny;
    language_bound_ = relax::relaxed_bound(language_, hierarchy, /*modelled=*/true, options.profiles,
                                           options.tuning.bound, 1, options.deadline);
    options_.relaxed_bound = language_bound_;
  }

  SearchResult run(std::span<const parallelizer::Parallelizer* const> parallelizers) {
    if (!choose_parallelizers(parallelizers)) return std::move(all_);
    const std::vector<Kind> kinds =
        kinds_of(encoder_cases(model_, hierarchy_.levels.front(), pricing_, options_.constraints.gpu_types));
    for (const Kind& kind : kinds) search_kind(kind);
    conclude();
    return std::move(all_);
  }

 private:
  [[nodiscard]] model::Model language_job() const {
    model::Model language = model::language_of(model_);
    model::Techniques& allow = language.job.allow;
    allow.mixed_stages = false;
    allow.interleaving = false;
    allow.zero_bubble = false;
    return language;
  }

  // Those that were given speak of the whole model.
  bool choose_parallelizers(std::span<const parallelizer::Parallelizer* const> given) {
    for (const parallelizer::Parallelizer* one : given) {
      const parallelizer::BuiltIn* built_in = parallelizer::find_built_in(one->info().name);
      if (built_in == nullptr) {
        all_.infeasible = {problem(ErrorKind::kInfeasible, "colocated-parallelizer",
                                   fmt::format("{} was started for the whole model and cannot be asked about the "
                                               "language model alone",
                                               one->info().name),
                                   "plan colocated encoders with the built-in parallelizers")};
        return false;
      }
      owned_.push_back(built_in->make(language_, options_.profiles));
      parallelizers_.push_back(owned_.back().get());
    }
    return true;
  }

  [[nodiscard]] Nanoseconds best() const {
    return all_.best.empty() ? options_.incumbent : std::min(options_.incumbent, all_.best.front().closed_form);
  }

  /// `language`: what the language model takes at least.
  [[nodiscard]] bool is_worth(const EncoderCase& one, Nanoseconds language) const {
    return best() == Nanoseconds::max() || (language < best() && one.least_time + language < best());
  }

  void search_kind(const Kind& kind) {
    Nanoseconds language = language_bound_;  // no language model is faster than one with all of the memory
    bool bounded = false;
    for (auto one = kind.begin(); one != kind.end(); ++one) {
      if (!is_worth(*one, language)) continue;
      if (!first_ && options_.deadline.has_passed()) {
        open_ = Nanoseconds(0);
        finished_ = false;
        return;
      }
      if (!bounded && best() != Nanoseconds::max() && kind.end() - one > 1) {
        language = std::max(language, bound_beside({one, kind.end()}));
        bounded = true;
        if (!is_worth(*one, language)) continue;
      }
      search_case(*one);
    }
  }

  /// What the language model takes at least beside any of these cases: with the least memory that one of them keeps.
  /// The largest time where that is of no interest beside the fastest of them.
  [[nodiscard]] Nanoseconds bound_beside(const Kind& kind) {
    EncoderCase least = kind.front();
    for (const EncoderCase& one : kind) {
      std::ranges::transform(least.reserve, one.reserve, least.reserve.begin(),
                             [](Bytes a, Bytes b) { return std::min(a, b); });
    }
    const SearchResult found = search_language(least, Bytes(0));
    note_space(least, found);
    all_.add_effort_of(found);
    if (!found.best.empty()) return found.search_bound;
    return found.is_out_of_budget() ? Nanoseconds(0) : Nanoseconds::max();
  }

  [[nodiscard]] model::Model model_of(const EncoderCase& one) const {
    model::Model language = language_;
    if (one.turns == EncoderTurns::kPerMicrobatch) {
      language.job.allow.pipeline = false;
      language.job.microbatch = one.microbatch;
    }
    return language;
  }

  [[nodiscard]] SearchResult search_language(const EncoderCase& one, Bytes more) const {
    SearchOptions limits = options_;
    limits.constraints.gpu_types = one.gpu_types;
    if (best() != Nanoseconds::max()) limits.incumbent = best() - one.least_time;
    limits.label_budget = std::max<std::int64_t>(1, options_.label_budget - all_.statistics.labels);
    return search(model_of(one), with_reserve(hierarchy_, one.reserve, more), parallelizers_, limits, progress_);
  }

  void search_case(const EncoderCase& one) {
    Bytes more;
    for (int i = 0; i <= kRepeats; ++i) {
      const SearchResult found = search_language(one, more);
      if (i == 0) note_bound(one, found);
      all_.add_effort_of(found);
      if (found.best.empty()) return;
      const Bytes shortage = place_all(one, found);
      if (shortage == Bytes(0)) return;
      more += shortage;
    }
  }

  // Of three phases, whose microbatches have any size, on most types.
  void note_space(const EncoderCase& one, const SearchResult& found) {
    const std::pair width(one.turns == EncoderTurns::kThreePhases, one.gpu_types.size());
    if (!first_ && width <= width_) return;
    all_.space = found.space;
    all_.space.name = "tangram/colocated-1";
    all_.levels = found.levels;
    width_ = width;
    first_ = false;
  }

  // What the case may still have: its first search takes no more memory than any of its plans keeps.
  void note_bound(const EncoderCase& one, const SearchResult& found) {
    note_space(one, found);
    least_reserve_ = std::min(least_reserve_, *std::ranges::min_element(one.reserve));
    if (found.best.empty()) {
      if (!found.is_out_of_budget()) return;
      all_.infeasible = found.infeasible;
    }
    finished_ = finished_ && found.finished;
    open_ = std::min(open_, found.search_bound + one.least_time);
  }

  // The least that all of them lack; 0: one was placed, or none would be with more memory.
  Bytes place_all(const EncoderCase& one, const SearchResult& found) {
    Bytes least = Bytes::max();
    bool placed_one = false;
    for (const Composition& language : found.best) {
      auto placed = pricing_.place(language, at(hierarchy_.levels, language.level), one.turns, one.layouts);
      if (placed.plan) {
        placed_one = true;
        if (placed.plan->closed_form < options_.incumbent) all_.best.push_back(std::move(*placed.plan));
      } else if (placed.shortage > Bytes(0)) {
        least = std::min(least, placed.shortage);
      }
    }
    keep_best(all_.best, options_.top);
    return placed_one || least == Bytes::max() ? Bytes(0) : least;
  }

  void conclude() {
    std::ranges::move(rules_of(), std::back_inserter(all_.space.rules));
    if (first_) {
      all_.infeasible = {problem(ErrorKind::kInfeasible, "colocated-layouts",
                                 "no degrees suit the encoders on these GPUs", "take another --placement")};
      return;
    }
    // Work over speed, which holds wherever the encoders are.
    all_.relaxed_bound = relax::relaxed_bound(model_, hierarchy_, /*modelled=*/false, options_.profiles);
    const Nanoseconds least = least_time();
    for (LevelReport& level : all_.levels) {
      level.best = Nanoseconds::max();
      level.bound = least;
    }
    if (all_.best.empty()) {
      if (all_.infeasible.empty()) all_.infeasible = no_room();
      return;
    }
    all_.infeasible.clear();
    for (const Composition& plan : all_.best) {
      LevelReport& level = at(all_.levels, plan.level);
      level.best = std::min(level.best, plan.closed_form);
    }
    const Nanoseconds best = all_.best.front().closed_form;
    all_.search_bound = std::min(best, std::max({std::min(open_, best), least, all_.relaxed_bound}));
    all_.finished = finished_;
    all_.optimal = all_.search_bound == best;
  }

  // Encoders and language model take turns.
  [[nodiscard]] Nanoseconds least_time() const {
    const double encoders = least_encoder_seconds(model_, hierarchy_.levels.front(), options_.profiles);
    return language_bound_ + Nanoseconds(static_cast<std::int64_t>(encoders * 1e9));
  }

  [[nodiscard]] Diagnostics no_room() const {
    constexpr double kGiB = 1024.0 * 1024 * 1024;
    return {problem(ErrorKind::kInfeasible, "colocated-memory",
                    fmt::format("no plan of the language model leaves room for its encoders, which keep at least "
                                "{:.1f} GiB on every GPU",
                                least_reserve_.as_double() / kGiB),
                    "take --placement any or disjoint, more GPUs, or a smaller --global-batch")};
  }

  const model::Model& model_;
  const cluster::IslandHierarchy& hierarchy_;
  SearchOptions options_;
  const ProgressCallback& progress_;
  model::Model language_;
  EncoderPricing pricing_;
  std::vector<std::unique_ptr<parallelizer::Parallelizer>> owned_;
  std::vector<const parallelizer::Parallelizer*> parallelizers_;
  SearchResult all_;
  Nanoseconds open_ = Nanoseconds::max();
  Nanoseconds language_bound_;
  Bytes least_reserve_ = Bytes::max();  ///< of the cases that were searched
  bool first_ = true;
  bool finished_ = true;
  std::pair<bool, std::size_t> width_;  ///< of the case whose space is told
};

}  // namespace

SearchResult search_colocated(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                              std::span<const parallelizer::Parallelizer* const> parallelizers,
                              const SearchOptions& options, const ProgressCallback& progress) {
  if (const std::string why = model::why_not_split(model); !why.empty()) {
    SearchResult none;
    none.infeasible = {problem(ErrorKind::kInfeasible, "colocated-model",
                               fmt::format("the encoders of {} cannot be colocated: {}", model.name, why),
                               "take --placement disjoint or any")};
    return none;
  }
  return ColocatedSearch(model, hierarchy, options, progress).run(parallelizers);
}

}  // namespace tangram::compose
