#include "compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

/// Of a slice, against the whole matrix of the reference; relative to the matrix's largest value.
double error_of(const std::vector<double>& values, int first, const Slice& slice, const std::vector<double>& whole) {
  double difference = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double d = std::abs(values[k] - whole[slice.place(first + static_cast<int>(k))]);
    if (!(d <= difference)) difference = d;  // a NaN counts as the largest
  }
  if (difference == 0) return 0;
  return difference / largest(whole);
}

/// How many times the reference the values are, if they are so everywhere; 0: they are not.
double ratio_of(const Parameter& p, const std::vector<double>& whole) {
  double along = 0;
  double squares = 0;
  for (std::size_t k = 0; k < p.shard_gradient.size(); ++k) {
    const double reference = whole[p.slice.place(p.shard.first + static_cast<int>(k))];
    along += p.shard_gradient[k] * reference;
    squares += reference * reference;
  }
  if (!(squares > 0)) return 0;
  const double ratio = along / squares;
  std::vector<double> scaled = p.shard_gradient;
  for (double& value : scaled) value /= ratio;
  return error_of(scaled, p.shard.first, p.slice, whole) <= kTolerance ? ratio : 0;
}

struct WrongGradient {
  const Parameter* parameter = nullptr;
  int rank = 0;
  double error = 0;
  double ratio = 0;          ///< to the reference, where it is the same for all values; 0 elsewhere
  bool not_reduced = false;  ///< what it was before the other copies, or the other parts, were asked
  bool of_group = false;     ///< what it was before the other sharding groups were asked
};

bool has_replicas(const Parameter& p) { return p.copies.replicas != nullptr && p.copies.replicas->size() > 1; }

WrongGradient diagnose(const Parameter& p, int rank, double error, const std::vector<double>& whole) {
  const bool alone = p.copies.all->size() == 1;
  const bool own =
      alone ? p.holders != nullptr && p.shard_gradient == p.part_gradient : p.part_gradient == p.own_gradient;
  const bool of_group = !own && has_replicas(p) && p.part_gradient == p.group_gradient;
  return {&p, rank, error, ratio_of(p, whole), own || of_group, of_group};
}

/// Whether some copy of each of these weights was not summed: the other copies, as those of another part, lack it too.
bool lack_sums(const std::vector<WrongGradient>& wrong) {
  std::set<std::string_view> not_summed;
  for (const WrongGradient& w : wrong) {
    if (w.not_reduced) not_summed.insert(w.parameter->name);
  }
  return std::ranges::all_of(wrong, [&](const WrongGradient& w) { return not_summed.contains(w.parameter->name); });
}

void keep_worst(Worst& worst, double error, const std::string& name, int rank) {
  if (error <= worst.error) return;
  worst = {error, name, rank};
}

std::map<std::string, const Parameter*> by_name(const Run& reference) {
  std::map<std::string, const Parameter*> map;
  for (const Parameter& p : reference.ranks.front()->parameters()) map[p.name] = &p;
  return map;
}

class Comparison {
 public:
  Comparison(const Job& job, const Run& run, const Run& reference, Report& report)
      : job_(job), run_(run), reference_(by_name(reference)), report_(report) {}

  void compare() {
    report_.matrices = static_cast<std::int64_t>(reference_.size());
    std::set<std::string> held;
    for (std::size_t r = 0; r < run_.ranks.size(); ++r) {
      for (const Parameter& p : run_.ranks[r]->parameters()) {
        held.insert(p.name);
        compare(p, job_.ranks[r], *reference_.at(p.name));
      }
    }
    for (const auto& [name, parameter] : reference_) {
      if (!held.contains(name)) report_.findings.push_back({"weight-missing", name, "no rank holds it"});
    }
  }

  /// One finding a place. A sum that one stage did not take part in is wrong elsewhere as well: only its origin counts.
  void explain() {
    std::vector<Finding> causes;
    std::vector<Finding> others;
    for (auto& [place, wrong] : wrong_) {
      const std::string where = name_of(place);
      if (same_ratio(wrong)) {
        causes.push_back({"gradient-scale", where, scale_sentence(wrong)});
      } else if (lack_sums(wrong)) {
        causes.push_back(
            {"gradient-not-reduced", where, sum_sentence(*std::ranges::find_if(wrong, &WrongGradient::not_reduced))});
      } else {
        others.push_back({"gradient-differs", where, difference_sentence(wrong)});
      }
      for (const WrongGradient& w : wrong) wrong_weight_.erase(w.parameter->name);
    }
    std::ranges::move(causes.empty() ? others : causes, std::back_inserter(report_.findings));
    explain_frozen();
    explain_weights();
  }

 private:
  struct WrongWeight {
    Worst worst;
    int encoder = -1;  ///< of the job
  };

  // Where gradients are wrong: ids of stages, behind them encoders.
  [[nodiscard]] int encoder_place(int encoder) const { return static_cast<int>(report_.stages.size()) + encoder; }
  [[nodiscard]] std::string name_of(int place) const {
    const int encoder = place - encoder_place(0);
    return encoder < 0 ? "stage " + std::to_string(place) : "encoder " + at(job_.encoders, encoder).name;
  }

  void compare(const Parameter& p, const JobRank& rank, const Parameter& reference) {
    const std::vector<double>& stepped = p.zero == 3 ? p.shard_value : p.value.values();
    const int first = p.zero == 3 ? p.shard.first : 0;
    const double off = error_of(stepped, first, p.slice, reference.value.values());
    if (!p.trained) return keep_worst(moved_, off, p.name, rank.number);
    keep_worst(report_.weight, off, p.name, rank.number);
    if (!(off <= kTolerance)) {
      WrongWeight& wrong = wrong_weight_[p.name];
      wrong.encoder = p.encoder;
      keep_worst(wrong.worst, off, p.name, rank.number);
    }

    const std::vector<double>& gradient = reference.shard_gradient;
    const double error = error_of(p.shard_gradient, p.shard.first, p.slice, gradient);
    keep_worst(report_.gradient, error, p.name, rank.number);
    const int stage = job_.stage_of(rank).id;
    Worst& worst = p.encoder < 0 ? at(report_.stages, stage).gradient : at(report_.encoders, p.encoder).gradient;
    keep_worst(worst, error, p.name, rank.number);
    const int place = p.encoder < 0 ? stage : encoder_place(p.encoder);
    if (!(error <= kTolerance)) wrong_[place].push_back(diagnose(p, rank.number, error, gradient));
  }

  /// With equal gradients a step differs by what it is scaled with, of all weights of an encoder alike.
  void explain_weights() {
    if (wrong_weight_.empty()) return;
    const auto& [name, wrong] = *wrong_weight_.begin();
    if (wrong.encoder >= 0) {
      report_.findings.push_back(
          {"norm-differs", name_of(encoder_place(wrong.encoder)),
           fmt::format("{} is off by {:.1e} on rank {} after the step, though its gradient is right: it was not scaled "
                       "by the norm of the gradients of all modules",
                       name, wrong.worst.error, wrong.worst.rank)});
      return;
    }
    report_.findings.push_back(
        {"weight-differs", "rank " + std::to_string(wrong.worst.rank),
         fmt::format("{} is off by {:.1e} after the step, though its gradient is right", name, wrong.worst.error)});
  }

  void explain_frozen() {
    if (moved_.name.empty()) return;
    report_.findings.push_back(
        {"frozen-updated", "rank " + std::to_string(moved_.rank),
         fmt::format("{} is frozen, and off by {:.1e} after the step", moved_.name, moved_.error)});
  }

  static bool same_ratio(const std::vector<WrongGradient>& wrong) {
    const double ratio = wrong.front().ratio;
    return ratio != 0 && std::ranges::all_of(wrong, [&](const WrongGradient& w) {
             return std::abs(w.ratio - ratio) <= kTolerance * std::abs(ratio);
           });
  }

  static std::string scale_sentence(const std::vector<WrongGradient>& wrong) {
    const WrongGradient& first = wrong.front();
    return fmt::format("gradients are {:.6g} times what one process computes, {} on rank {} and {} more", first.ratio,
                       first.parameter->name, first.rank, wrong.size() - 1);
  }

  static std::string sum_sentence(const WrongGradient& wrong) {
    const Copies& copies = wrong.parameter->copies;
    if (wrong.of_group) {
      return fmt::format("the gradient of {} on rank {} is its sharding group's alone: the sum over {} is missing",
                         wrong.parameter->name, wrong.rank, copies.replicas->name);
    }
    const Group& group = *copies.all;
    return fmt::format("the gradient of {} on rank {} is its own alone: the sum over {} is missing",
                       wrong.parameter->name, wrong.rank,
                       group.size() > 1 ? group.name : "the other parts that hold it");
  }

  static std::string difference_sentence(const std::vector<WrongGradient>& wrong) {
    const auto worst = std::ranges::max_element(wrong, {}, &WrongGradient::error);
    return fmt::format("{} gradients differ, most of all {} on rank {}: by {:.1e}", wrong.size(),
                       worst->parameter->name, worst->rank, worst->error);
  }

  const Job& job_;
  const Run& run_;
  std::map<std::string, const Parameter*> reference_;
  Report& report_;
  std::map<int, std::vector<WrongGradient>> wrong_;  // by place
  std::map<std::string, WrongWeight> wrong_weight_;  // by name
  Worst moved_;                                      // of what is frozen
};

}  // namespace

void compare(const Job& job, const Run& run, const Run& reference, Report& report) {
  report.loss = run.loss;
  report.reference_loss = reference.loss;
  report.loss_error = std::abs(run.loss - reference.loss) / std::abs(reference.loss);
  if (!(report.loss_error <= kTolerance)) {
    report.findings.push_back({"loss-differs", "plan",
                               fmt::format("the loss is {:.12g}, one process gets {:.12g}", run.loss, reference.loss)});
  }
  Comparison comparison(job, run, reference, report);
  comparison.compare();
  std::vector<Finding> handed_over = handover_findings(job, run, reference);
  if (handed_over.empty()) return comparison.explain();
  std::ranges::move(handed_over, std::back_inserter(report.findings));
}

}  // namespace tangram::execute
