// Event simulation of passes through GPUs and links, several at a time. Goes in: the segments of each kind of pass, how
// many passes are in flight, when they arrive. Comes out: when every pass began and ended, and how busy everything was.
// Shares no code with the planner of placements.
#pragma once

#include <cstdint>
#include <vector>

namespace tangram::streams {

/// Work that is not interrupted: kernels of one GPU in a row, or a message on a link.
struct Segment {
  int resource = 0;
  double seconds = 0;
  std::vector<int> after;  ///< earlier segments of the pass that end first
};

/// Passes that are alike. Segments stand in the order in which a resource that may run several begins.
struct PassKind {
  std::vector<std::vector<Segment>> ways;  ///< the segments of each way that passes may go; at least one way
  int in_flight = 1;                       ///< passes of the kind that are under way at most
  std::int64_t passes = 0;                 ///< simulated
  std::vector<double> arrivals;            ///< ascending, of each pass; empty: all are there from the beginning
  std::vector<int> turns = {};  ///< which ways passes go, again and again in this order; empty: all go the first

  [[nodiscard]] int way_of(std::int64_t pass) const;
};

struct Schedule {
  std::vector<int> servers;  ///< by resource: how many there are alike. A place in flight keeps to one of them
  std::vector<PassKind> kinds;
};

/// Which of the segments that are ready a resource runs first.
enum class Priority : std::uint8_t {
  kOldestPass,  ///< of the pass that began first
  kFirstReady,  ///< that was ready first
};

struct PassTimes {
  double begin = 0;  ///< when it got a place in flight
  double end = 0;
};

/// A segment as it ran.
struct Work {
  int kind = 0;
  std::int64_t pass = 0;  ///< of the kind
  int segment = 0;        ///< of the way that the pass goes
  int server = 0;         ///< of the segment's resource
  double begin = 0;
  double end = 0;
};

struct Run {
  std::vector<std::vector<PassTimes>> passes;  ///< by kind
  std::vector<double> busy;                    ///< by resource: seconds of all its servers
  double end = 0;
  std::vector<Work> work = {};  ///< only with record = true; in the order in which it began

  /// Seconds from one end of a pass to the next of a kind while all its places are taken: from a third of these passes
  /// on, until the last one begins. Of one pass alone its latency.
  [[nodiscard]] double period(int kind) const;
  /// Mean seconds from begin to end of the passes of that time. Divided by the places it is a period as well (Little's
  /// law), and a better one where passes end in clusters.
  [[nodiscard]] double mean_latency(int kind) const;
};

/// Passes begin in their order as places come free, kinds that are ready at once in theirs. What happens at one time
/// happens together before anything starts. O(segments * passes * log).
[[nodiscard]] Run run(const Schedule& schedule, Priority priority = Priority::kOldestPass, bool record = false);

}  // namespace tangram::streams
