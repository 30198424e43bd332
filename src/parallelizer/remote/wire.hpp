// What the planner and its agents say to each other. An agent opens a connection and greets with the first half of the
// secret; the planner answers with the second: whoever takes over the port of a planner that is gone does not know it.
// Then the planner sends orders over it, and the agent reports:
//
//   start LAUNCH MEMORY ARGUMENTS VARIABLES BYTES \n  and so many strings, each ended by a zero: words, names=values
//   stop MILLISECONDS \n                              within which the worker may end by itself
//
//   started | failed WHY | ended HOW \n
//
// For each worker it opens two more, which carry bytes as they are: the protocol, and what the worker prints.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "tangram/parallelizer/launcher.hpp"

namespace tangram::parallelizer {

inline constexpr const char* kSecretVariable = "TANGRAM_WORKER_SECRET";

struct Secret {
  std::string call;    ///< said by the agent
  std::string answer;  ///< said by the planner

  bool operator==(const Secret&) const = default;
};

/// 128 bits each from the kernel.
[[nodiscard]] Secret make_secret();
[[nodiscard]] std::string to_text(const Secret& secret);
[[nodiscard]] std::optional<Secret> secret_from(std::string_view text);

enum class Role : std::uint8_t { kAgent, kChannel, kOutput };

/// The first line of a connection.
struct Greeting {
  std::string call;
  Role role = Role::kAgent;
  std::string of;  ///< the agent's host, or the number of the launch

  bool operator==(const Greeting&) const = default;
};

inline constexpr std::size_t kLongestGreeting = 512;

[[nodiscard]] std::string greeting_line(const Greeting& greeting);
[[nodiscard]] std::optional<Greeting> read_greeting(std::string_view line);

struct StartOrder {
  std::int64_t launch = 0;
  WorkerCommand command;
};
struct StopOrder {
  std::chrono::milliseconds grace{0};
};
using Order = std::variant<StartOrder, StopOrder>;

[[nodiscard]] std::string to_text(const StartOrder& order);
[[nodiscard]] std::string to_text(const StopOrder& order);

/// Takes the first order off `incoming`; nothing while it is not all there. Nonsense: `broken` is set.
[[nodiscard]] std::optional<Order> take_order(std::string& incoming, bool& broken);

/// Takes the first line off `incoming`, without its end.
[[nodiscard]] std::optional<std::string> take_line(std::string& incoming);

}  // namespace tangram::parallelizer
