// TCP between machines of one cluster.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "../plugin/descriptor.hpp"
#include "tangram/base/expected.hpp"

namespace tangram::parallelizer {

/// Waits for callers on every interface of this machine, at a port that the kernel chooses.
struct Listener {
  Descriptor socket;                   ///< non-blocking
  std::vector<std::string> addresses;  ///< HOST:PORT, numeric: where others may reach it, this machine's loopback last
};
[[nodiscard]] Expected<Listener> listen_anywhere();

/// Closed when nobody answers there in time. `address` is HOST:PORT, or [HOST]:PORT of IPv6.
[[nodiscard]] Descriptor connect_to(const std::string& address, std::chrono::milliseconds patience);

/// Small messages go at once, and a machine that vanishes is noticed within half a minute.
void prepare(const Descriptor& socket);

/// Sends all of it. False: the other end is gone, or takes nothing for `patience`.
[[nodiscard]] bool send_all(const Descriptor& socket, std::string_view text, std::chrono::milliseconds patience);

/// Appends what comes within `patience`, at most once. False: the other end is gone.
[[nodiscard]] bool receive_some(const Descriptor& socket, std::string& incoming, std::chrono::milliseconds patience);

}  // namespace tangram::parallelizer
