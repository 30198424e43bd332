#include "tangram/multimodal/colocated.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "faults.hpp"
#include "tangram/base/at.hpp"
#include "tangram/multimodal/closed_form.hpp"
#include "tangram/multimodal/timetable.hpp"

namespace tangram::multimodal {

namespace {

class ColocatedCheck {
 public:
  explicit ColocatedCheck(const Colocated& plan) : plan_(plan) {}

  Expected<void> run() {
    faults_.need(!plan_.super_lanes.empty(), "/super_lanes", "at least one super-lane is needed");
    faults_.need(plan_.rounds > 0, "/rounds", "at least one round is needed");
    faults_.need(plan_.sync >= 0, "/sync", "synchronisation takes no less than nothing");
    faults_.need(plan_.step >= 0, "/step", "an optimizer step takes no less than nothing");
    for (std::size_t i = 0; i < plan_.super_lanes.size(); ++i) {
      super_lane("/super_lanes/" + std::to_string(i), plan_.super_lanes[i]);
    }
    return std::move(faults_).answer();
  }

 private:
  void super_lane(const std::string& place, const SuperLane& own) {
    faults_.need(!own.lanes.empty(), place + "/lanes", "at least one lane runs the encoders");
    faults_.need(own.gather >= 0 && own.broadcast >= 0, place, "boundaries take no less than nothing");
    for (const EncoderLane& lane : own.lanes) {
      const bool exists = lane.stage >= 0 && lane.stage < static_cast<int>(own.language.stages.size());
      faults_.need(exists, place + "/lanes", "a lane is on the GPUs of a stage of the language model");
      faults_.need(lane.forward >= 0 && lane.backward >= 0, place + "/lanes",
                   "encoder passes take no less than nothing");
    }
    faults_.add(place + "/language", check(own.language));
    const bool synchronises =
        std::ranges::any_of(own.language.stages, [](const Stage& stage) { return stage.plan.A > stage.plan.T; });
    faults_.need(!synchronises, place + "/language",
                 "gradients are synchronised behind all passes: A is T on every stage");
  }

  const Colocated& plan_;
  Faults faults_{"colocated-plan"};
};

// Of all rounds.
std::optional<std::int64_t> form_of(const SuperLane& own, std::int64_t rounds) {
  const auto language = closed_form(own.language);
  if (!language) return std::nullopt;
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  for (const EncoderLane& lane : own.lanes) {
    forward = std::max(forward, lane.forward);
    backward = std::max(backward, lane.backward);
  }
  const std::int64_t pipeline = language->latency + (own.language.microbatches - 1) * language->period;
  return rounds * (forward + own.gather + pipeline + own.broadcast + backward);
}

// One super-lane, round by round.
class Rounds {
 public:
  Rounds(const SuperLane& own, std::vector<std::int64_t> in_flight)
      : own_(own), in_flight_(std::move(in_flight)), lane_free_(own.lanes.size(), 0) {}

  // False: stages of the language model wait for each other for ever.
  bool run() {
    std::int64_t gathered = 0;
    for (std::size_t i = 0; i < lane_free_.size(); ++i) {
      gathered = std::max(gathered, lane_free_[i] + own_.lanes[i].forward);
    }
    const auto ends = ends_of(own_.language, in_flight_, gathered + own_.gather);
    if (!ends) return false;
    const std::int64_t gradients = first_stages_end(*ends) + own_.broadcast;
    for (std::size_t i = 0; i < lane_free_.size(); ++i) {
      const EncoderLane& lane = own_.lanes[i];
      const std::int64_t own_end = at(*ends, lane.stage);
      lane_free_[i] = lane.backward > 0 ? std::max(own_end, gradients) + lane.backward : own_end;
    }
    end_ = std::max(end_, *std::ranges::max_element(*ends));
    end_ = std::max(end_, *std::ranges::max_element(lane_free_));
    return true;
  }

  [[nodiscard]] std::int64_t end() const { return end_; }

 private:
  // The gradients of what encoders made are there when stages that nothing is in front of are done.
  [[nodiscard]] std::int64_t first_stages_end(const std::vector<std::int64_t>& ends) const {
    std::int64_t end = 0;
    for (std::size_t s = 0; s < ends.size(); ++s) {
      const auto number = static_cast<int>(s);
      if (std::ranges::find(own_.language.edges, number, &Edge::to) == own_.language.edges.end()) {
        end = std::max(end, ends[s]);
      }
    }
    return end;
  }

  const SuperLane& own_;
  std::vector<std::int64_t> in_flight_;
  std::vector<std::int64_t> lane_free_;
  std::int64_t end_ = 0;
};

std::optional<std::int64_t> run_of(const SuperLane& own, std::int64_t count) {
  const auto language = closed_form(own.language);
  if (!language) return std::nullopt;
  Rounds rounds(own, language->in_flight);
  for (std::int64_t i = 0; i < count; ++i) {
    if (!rounds.run()) return std::nullopt;
  }
  return rounds.end();
}

// The slowest super-lane, and what all do together behind it.
template <class TimeOf>
std::optional<std::int64_t> iteration(const Colocated& plan, TimeOf time_of) {
  std::int64_t slowest = 0;
  for (const SuperLane& own : plan.super_lanes) {
    const std::optional<std::int64_t> time = time_of(own, plan.rounds);
    if (!time) return std::nullopt;
    slowest = std::max(slowest, *time);
  }
  return slowest + plan.sync + plan.step;
}

}  // namespace

Expected<void> check(const Colocated& plan) { return ColocatedCheck(plan).run(); }

std::optional<std::int64_t> closed_form(const Colocated& plan) { return iteration(plan, form_of); }

std::optional<std::int64_t> timetable(const Colocated& plan) { return iteration(plan, run_of); }

}  // namespace tangram::multimodal
