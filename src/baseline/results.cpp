#include "tangram/baseline/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <memory>
#include <optional>

#include "amp_results.hpp"
#include "tangram/import/import.hpp"
#include "tangram/import/job.hpp"

namespace tangram::baseline {

namespace {

using importing::Source;

std::optional<std::pair<std::string, Source>> program_of(const std::string& text) {
  const auto says = [&](const char* words) { return text.find(words) != std::string::npos; };
  if (says("\"hetero_configs\"")) return std::pair("flashflex", Source::kFlashflex);
  if (says("\"pipeline_list\"") || says("\"layers_per_stage\"")) return std::pair("sailor", Source::kSailor);
  if (says("rank, cost, node_sequence") || says("DeviceType.")) return std::pair("metis", Source::kMetis);
  return std::nullopt;
}

Diagnostic unknown_format(const std::string& file) {
  Diagnostic d;
  d.code = "unknown-results";
  d.where = {file, 1, 1};
  d.message = "these are not results of a planner that is known here";
  d.hint = "Metis' ranked list, Sailor's plan JSON, AMP's ranks, FlashFlex' hetero_configs, or a launch plan";
  return d;
}

bool is_empty_list(const std::string& text) {
  std::string rest = text;
  std::erase_if(rest, [](unsigned char c) { return std::isspace(c) != 0; });
  return rest == "[]";
}

Diagnostic no_plans(const std::string& file) {
  Diagnostic d;
  d.code = "no-plans";
  d.where = {file, 1, 1};
  d.message = "the list is empty: the program found no plan";
  return d;
}

/// Before its list Metis logs a hundred megabytes. Their lines stay as blank ones, so that places in the file are
/// right.
std::string without_log(const std::string& text) {
  const std::size_t list = text.find("\nrank, cost, node_sequence");
  if (list == std::string::npos) return text;
  const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(list), '\n');
  return std::string(static_cast<std::size_t>(lines), '\n') + text.substr(list);
}

/// What Metis says of its plans beside the plans themselves.
class MetisClaims {
 public:
  explicit MetisClaims(const std::string& text) {
    std::map<std::string, double> longest;
    for (std::size_t first = 0; first < text.size();) {
      const std::size_t end = std::min(text.find('\n', first), text.size());
      read(std::string_view(text).substr(first, end - first), longest);
      first = end + 1;
    }
    for (auto& [rank, claim] : claims_) claim.mis_costed = claim.seconds < longest[claim.plan];
  }

  void tell(Candidate& candidate) const {
    const auto claim = claims_.find(candidate.rank);
    if (claim == claims_.end()) return;
    candidate.claimed = claim->second.seconds;
    if (!claim->second.mis_costed || candidate.label != Label::kOk) return;
    candidate.label = Label::kMisCosted;
    candidate.reason = "the same plan is listed again with a longer time";
  }

 private:
  struct Claim {
    double seconds = 0;
    std::string plan;  ///< the rest of the line
    bool mis_costed = false;
  };

  /// "rank, milliseconds, plan"; anything else is not looked at.
  void read(std::string_view line, std::map<std::string, double>& longest) {
    std::int64_t rank = 0;
    double milliseconds = 0;
    const char* end = line.data() + line.size();
    const auto after = std::from_chars(line.data(), end, rank);
    if (after.ec != std::errc() || end - after.ptr < 2 || *after.ptr != ',' || after.ptr[1] != ' ') return;
    const auto then = std::from_chars(after.ptr + 2, end, milliseconds);
    if (then.ec != std::errc()) return;
    const std::string plan(then.ptr, end);
    double& most = longest[plan];
    most = std::max(most, milliseconds / 1000);
    claims_.emplace(rank, Claim{milliseconds / 1000, plan, false});
  }

  std::map<std::int64_t, Claim> claims_;
};

Label label_of(const std::string& code) {
  if (code == "no-head" || code == "no-embedding") return Label::kLayersMissing;
  return code == "empty-stage" ? Label::kStageEmpty : Label::kInexpressible;
}

/// These programs know no experts: where they have tensor parallelism, those are sharded like everything else.
importing::ReadJob with_experts(importing::ReadJob job, const model::Model& model) {
  auto changed = std::make_unique<importing::Job>(job.job());
  for (importing::JobPipeline& pipeline : changed->pipelines) {
    for (importing::JobStage& stage : pipeline.stages) {
      int least = stage.replicas.empty() ? 1 : stage.replicas.front().tp;
      int most = least;
      for (const importing::Replica& replica : stage.replicas) {
        least = std::min(least, replica.tp);
        most = std::max(most, replica.tp);
      }
      const cost::Degrees degrees = replica_degrees(model, most);
      stage.common.sequence_parallel |= degrees.sequence_parallel;
      if (least == most) stage.common.etp = degrees.etp;
    }
  }
  return importing::ReadJob(std::move(changed));
}

Candidate imported(const importing::ReadJob& job, std::int64_t rank, const Judge& by) {
  importing::Options options;
  options.profiles = by.profiles;
  options.hierarchy = &by.hierarchy;
  auto made = importing::make_plan(job, by.fleet, by.model, options);
  if (made) {
    Candidate candidate = judge(std::move(made->plan), by);
    candidate.rank = rank;
    candidate.claimed = job.job().claimed_seconds;
    return candidate;
  }
  const Diagnostic& why = made.error().front();
  return {rank, job.job().claimed_seconds, label_of(why.code), why.message, {}, std::nullopt};
}

}  // namespace

Expected<Results> judge_results(const std::string& text, const std::string& file, const PlannerInput& input,
                                const Judge& by, std::int64_t most) {
  if (is_amp_list(text)) {
    const auto proposals = read_amp(text, file, input);
    if (!proposals) return fail(proposals.error());
    return Results{"amp", first_usable(*proposals, input, by, most)};
  }
  const auto program = program_of(text);
  if (!program) return fail(is_empty_list(text) ? no_plans(file) : unknown_format(file));
  Results results{program->first, {}};
  const importing::SourceFile source{file, program->second == Source::kMetis ? without_log(text) : text};
  const MetisClaims claims(source.text);
  const bool ranked = program->second == Source::kMetis || program->second == Source::kSailor;
  const std::int64_t last = ranked ? most : 1;
  for (std::int64_t rank = 1; rank <= last; ++rank) {
    auto job = importing::read_job(program->second, {source}, rank);
    if (!job && rank == 1) return fail(job.error());
    if (!job) break;  // the end of the list
    Candidate candidate = imported(with_experts(std::move(*job), by.model), rank, by);
    if (program->second == Source::kMetis) claims.tell(candidate);
    results.verdict.judged.push_back(std::move(candidate));
    if (results.verdict.judged.back().runs()) break;
  }
  return results;
}

}  // namespace tangram::baseline
