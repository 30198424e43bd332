#include "tangram/multimodal/join.hpp"

#include <algorithm>
#include <queue>
#include <string>
#include <utility>

#include "faults.hpp"
#include "join_at_period.hpp"
#include "stage_row.hpp"
#include "tangram/base/at.hpp"
#include "tangram/multimodal/closed_form.hpp"

namespace tangram::multimodal {

namespace {

// Selections whose least period lies in [low, high], and what none of them is faster than.
struct PeriodWindow {
  std::int64_t bound = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;

  bool operator>(const PeriodWindow& other) const { return bound > other.bound; }
};

class JoinSearch {
 public:
  JoinSearch(const JoinProblem& problem, std::int64_t incumbent) : problem_(problem) { result_.time = incumbent; }

  JoinResult run(const Deadline& deadline) {
    open(0, shortest(), longest());
    while (!windows_.empty() && windows_.top().bound < result_.time) {
      if (deadline.has_passed()) break;
      const PeriodWindow window = windows_.top();
      windows_.pop();
      look_into(window);
    }
    result_.finished = windows_.empty() || windows_.top().bound >= result_.time;
    result_.bound = result_.finished ? result_.time : windows_.top().bound;
    return std::move(result_);
  }

 private:
  // `fixed`: no selection of the window has less beside its M - 1 periods.
  void open(std::int64_t fixed, std::int64_t low, std::int64_t high) {
    if (low <= high) windows_.push({fixed + (problem_.microbatches - 1) * low, low, high});
  }

  // The best at the longest period of a window beats all that have its own period or a longer one.
  void look_into(const PeriodWindow& window) {
    ++result_.periods;
    const auto joined = JoinAtPeriod(problem_, window.high).best();
    if (!joined) return;
    const auto form = closed_form(graph_of(problem_, joined->selection));
    TANGRAM_ASSERT(form && form->period <= window.high);
    if (form->time < result_.time) {
      result_.time = form->time;
      result_.best = joined->selection;
    }
    const std::int64_t high = form->period - 1;
    const std::int64_t middle = window.low + (high - window.low) / 2;
    open(joined->fixed, window.low, std::min(middle, high));
    open(joined->fixed, middle + 1, high);
  }

  // No selection has a shorter period.
  [[nodiscard]] std::int64_t shortest() const {
    std::int64_t period = least_slowest(problem_.language);
    for (const Encoder& encoder : problem_.encoders) period = std::max(period, least_slowest(encoder.choices));
    return period;
  }

  static std::int64_t least_slowest(const std::vector<Choice>& choices) {
    std::int64_t least = INT64_MAX;
    for (const Choice& choice : choices) {
      std::int64_t slowest = 1;
      for (const Stage& stage : choice.stages) slowest = std::max(slowest, stage.plan.T);
      least = std::min(least, slowest);
    }
    return least;
  }

  // Longer periods allow nothing more: the longest round trip, and what links are taken for.
  [[nodiscard]] std::int64_t longest() const {
    std::int64_t period = longest_round_trip(problem_.language);
    for (const Encoder& encoder : problem_.encoders) {
      period += longest_round_trip(encoder.choices);
      for (const Price& price : encoder.boundary) period += price.is_none() ? 0 : 2 * price.latency + price.occupancy;
    }
    return period;
  }

  static std::int64_t longest_round_trip(const std::vector<Choice>& choices) {
    std::int64_t longest = 0;
    for (const Choice& choice : choices) {
      std::int64_t trip = 0;
      for (const Stage& stage : choice.stages) trip += stage.plan.T;
      for (const Price& hop : choice.hops) trip += hop.is_none() ? 0 : 2 * hop.latency + hop.occupancy;
      longest = std::max(longest, trip);
    }
    return longest;
  }

  const JoinProblem& problem_;
  std::priority_queue<PeriodWindow, std::vector<PeriodWindow>, std::greater<>> windows_;
  JoinResult result_;
};

class JoinCheck {
 public:
  explicit JoinCheck(const JoinProblem& problem) : problem_(problem) {}

  Expected<void> run() {
    faults_.need(problem_.microbatches > 0, "/microbatches", "at least one microbatch is needed");
    choices("/language", problem_.language);
    const bool trained = std::ranges::all_of(
        problem_.language, [](const Choice& one) { return std::ranges::none_of(one.stages, &Stage::is_frozen); });
    faults_.need(trained, "/language", "the language model has a backward pass, for what is trained in front of it");
    for (std::size_t e = 0; e < problem_.encoders.size(); ++e) {
      const std::string place = "/encoders/" + std::to_string(e);
      choices(place + "/choices", problem_.encoders[e].choices);
      boundary(place + "/boundary", problem_.encoders[e]);
    }
    return std::move(faults_).answer();
  }

 private:
  void choices(const std::string& list, const std::vector<Choice>& all) {
    faults_.need(!all.empty(), list, "each module needs a way to run");
    for (std::size_t i = 0; i < all.size(); ++i) choice(list + '/' + std::to_string(i), all[i]);
  }

  void choice(const std::string& place, const Choice& one) {
    const bool counted = one.units.size() == problem_.inventory.size() &&
                         std::ranges::all_of(one.units, [](int units) { return units >= 0; });
    faults_.need(counted, place + "/units", "units of every class, none of them negative");
    const bool whole = one.stages.size() == one.hops.size() + 1;
    faults_.need(whole, place + "/hops", "a hop behind each stage but the last");
    if (!whole) return;
    StageGraph graph;
    append_row(graph, one.stages, one.hops);
    faults_.add(place, multimodal::check(graph));
  }

  void boundary(const std::string& place, const Encoder& encoder) {
    const auto all_below = [](const std::vector<Choice>& all, int keys) {
      return std::ranges::all_of(all, [&](const Choice& one) { return one.key >= 0 && one.key < keys; });
    };
    faults_.need(
        all_below(encoder.choices, encoder.boundary.rows()) && all_below(problem_.language, encoder.boundary.columns()),
        place, "a price for every key of the encoder and of the language model");
    const auto is_valid = [](const Price& price) { return price.latency >= 0 && price.occupancy >= 0; };
    faults_.need(std::ranges::all_of(encoder.boundary, is_valid), place, "latency and occupancy are not negative");
  }

  const JoinProblem& problem_;
  Faults faults_{"join-problem"};
};

}  // namespace

Expected<void> check(const JoinProblem& problem) { return JoinCheck(problem).run(); }

StageGraph graph_of(const JoinProblem& problem, const Selection& selection) {
  StageGraph graph;
  graph.microbatches = problem.microbatches;
  graph.graph_warmup = problem.graph_warmup;
  std::vector<int> last;
  for (std::size_t e = 0; e < problem.encoders.size(); ++e) {
    const Choice& choice = at(problem.encoders[e].choices, selection.encoders[e]);
    append_row(graph, choice.stages, choice.hops);
    last.push_back(static_cast<int>(graph.stages.size()) - 1);
  }
  const Choice& language = at(problem.language, selection.language);
  const int first = static_cast<int>(graph.stages.size());
  for (std::size_t e = 0; e < last.size(); ++e) {
    const Encoder& encoder = problem.encoders[e];
    const int key = at(encoder.choices, selection.encoders[e]).key;
    graph.edges.push_back({last[e], first, encoder.boundary(key, language.key)});
  }
  append_row(graph, language.stages, language.hops);
  return graph;
}

JoinResult join(const JoinProblem& problem, std::int64_t incumbent, const Deadline& deadline) {
  return JoinSearch(problem, incumbent).run(deadline);
}

}  // namespace tangram::multimodal
