// What a search spends its effort on, layer by layer: every number that was chosen, not derived, and the bounds and
// cuts that can be switched off by name. Goes in: nothing; the defaults are what is planned with. No number makes a
// plan or a bound wrong. What names the space, as sizes of shapes by the size of the fleet, is no tuning: space.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/chain/solver_tuning.hpp"
#include "tangram/relax/bound_tuning.hpp"

namespace tangram::compose {

/// Programs of a space, one after the other.
struct ProgramTuning {
  // The first look.
  bool first_look = true;           ///< one pipeline first: its plan spares most questions about the others
  int first_look_sizes = 3;         ///< microbatch sizes that it tries
  int first_look_shapes = 3;        ///< largest shapes of each class that it offers
  std::int64_t slowest_likely = 8;  ///< times the work over speed: slower plans are hardly worth a first look
  double usual_microbatches = 64;   ///< microbatch sizes that give about so many are tried first
  // Asking and cutting.
  bool screening = true;     ///< programs are cut by the time of single blocks before more is asked for
  bool root_bound = true;    ///< and by their relaxation before they are solved
  bool staircases = true;    ///< slices of few lengths bound all others before these are asked for
  int dense_slices = 4;      ///< up to so many blocks these are all lengths; then they double
  int blocks_per_round = 8;  ///< lengths that differ by less are asked for together; later rounds skip dead slices
  // Labels.
  std::int64_t first_pass = 6'250;        ///< labels of a program before all were tried: most are done with them
  std::int64_t first_pass_share = 120;    ///< and no more than such a part of the budget
  std::int64_t ample_labels = 2'000'000;  ///< with so many, fleets of some hundred GPUs are searched to the end
  int fully_searched_gpus = 256;          ///< fleets up to here get them where no budget is set
  double budget_beyond = 0.625;           ///< larger ones this part: a label takes longer there
  bool wide_gap_first = true;             ///< where labels are scarce, all are proven to a wide gap first
  double wide_gap = 0.025;                ///< this one: it takes a tenth of the labels
  int cases_at_once = 4;                  ///< of a target, once there is a plan; each with a share of the labels
  int programs_at_once = 4;               ///< solved unaware of each other, so that threads do not decide what is found
  int sizes_at_once = 2;                  ///< microbatch sizes, one of them being solved
  int unfinished_at_once = 3;             ///< programs that are solved again
  int unfinished_at_once_if_ample = 2;    ///< where each is searched to its end: one may need half of the labels
  // Timetables.
  bool small_fleet_timetables = true;    ///< small fleets: all programs near the best, for timetables alone
  int timetable_gpus = 16;               ///< fleets up to here: few microbatches fill their pipelines
  double timetable_reach = 0.3;          ///< above the best closed form: a timetable is up to a fifth below its own
  int near_timetable_gpus = 32;          ///< those up to here are looked at, too, less far
  double near_timetable_reach = 0.1;     ///< there: up to 3 % faster plans in half as long again
  int few_timetable_gpus = 256;          ///< and on those up to here programs of few microbatches:
  std::int64_t few_microbatches = 8;     ///< up to so many, of which a pipeline fills and drains most of the time
  bool last_local_search = true;         ///< the fastest plan is changed in all ways at the end
  int last_starts = 16;                  ///< on small fleets so many of the fastest are: each may lead elsewhere
  std::int64_t last_effort = 3'000'000;  ///< passes of timetables for one of them
  std::int64_t effort_of_label = 10;     ///< and for every label of the search: a few hundredths of its time
  std::int64_t other_setting_share = 3;  ///< this part of it for another microbatch size or number of pipelines
  std::int64_t closed_form_share = 10;   ///< closed forms are above timetables by such a part, mostly
  int boundary_reach = 2;                ///< blocks that a boundary may move by in another setting
  int short_slices = 4;                  ///< blocks up to which slices are asked for in another setting
  bool operator==(const ProgramTuning&) const = default;
};

/// Searches under limits, one after the other (objective.hpp).
struct ObjectiveTuning {
  double look_window = 0.5;             ///< from limit to limit of a first look: where the next one begins
  double window = 0.8;                  ///< and of windows that are searched to their ends
  std::int64_t look_share = 100;        ///< part of the labels for a search of the first look
  std::int64_t window_share = 20;       ///< and for a window, or a type alone
  int types_in_pairs = 5;               ///< cheapest GPU types of which pairs are looked at
  int choices = 24;                     ///< limits of a choice of plans that are looked at
  int plans_to_show = 12;               ///< simulated where a time is to be made: any of them may make it
  std::int64_t more_tries = 12;         ///< numbers of GPUs below the fewest that were found
  std::int64_t most_searches = 400;     ///< that a budget pays for: a search takes time beside its labels
  std::int64_t remedy_labels = 20'000;  ///< for a first plan of a changed job, if it has any
  bool operator==(const ObjectiveTuning&) const = default;
};

/// Pipelines that are not alike (ensemble): how far one search for them looks.
struct AllocationTuning {
  int rounds = 4;              ///< of shifting shares of the batch until all finish together
  std::int64_t tried = 40;     ///< allocations of islands to groups, in all
  std::int64_t searches = 16;  ///< one search may use this part of the labels
  double slowest = 2;          ///< times what is to beat: what is slower tells nothing about its speed
  int parts = 1 << 20;         ///< partial plans in a mixed stage
  bool operator==(const AllocationTuning&) const = default;
};

struct EnsembleTuning {
  AllocationTuning full;
  AllocationTuning look{2, 2, 64, 1.02, 1};  ///< a quick look beside a search
  std::int64_t shares_of_batch = 64;         ///< shares are multiples of about this part of the batch
  double group_gap = 0.01;                   ///< searches of groups need not prove the last percent
  int all_partitions_classes = 4;            ///< up to here all 15 partitions of classes into groups are tried
  int most_even_groups = 8;                  ///< groups that every class is cut into
  bool operator==(const EnsembleTuning&) const = default;
};

struct SearchTuning {
  chain::SolverTuning solver;
  relax::BoundTuning bound;
  ProgramTuning programs;
  ObjectiveTuning objectives;
  EnsembleTuning ensemble;
  bool operator==(const SearchTuning&) const = default;
};

/// A bound, cut or pass of any layer by its name.
struct SearchSwitch {
  std::string_view name;
  std::string_view summary;
  std::function<bool&(SearchTuning& tuning)> of;
};

/// All of them, those of the solver first.
[[nodiscard]] std::vector<SearchSwitch> search_switches();

/// The tuning with what these names stand for switched off, separated by commas; the error lists all names.
[[nodiscard]] Expected<SearchTuning> without(SearchTuning tuning, std::string_view names);

}  // namespace tangram::compose
