// Words for people. Goes in: a level as numbers. Comes out: its name, the aliases of its classes, the reasons of its
// islands.
#pragma once

#include "island_classes.hpp"

namespace tangram::cluster {

/// "host", a label's key, "fleet", "node" (nothing is joined), or the bandwidth that holds the islands together.
[[nodiscard]] std::string level_name(const Fleet& fleet, const UnnamedLevel& unnamed);

/// The GPU type's name, and where several classes share it what tells them apart: "A100-80GB-SXM@rack=r1".
[[nodiscard]] std::vector<std::string> class_aliases(const Fleet& fleet, const UnnamedLevel& unnamed, double tolerance);

/// Why each island's GPUs are together and apart from others; by island. Classes must have their aliases.
[[nodiscard]] std::vector<std::string> island_reasons(const Fleet& fleet, const UnnamedLevel& named, double tolerance);

/// Of a network or bus: "200 Gbit/s".
[[nodiscard]] std::string bits_per_second(BytesPerSecond bandwidth);

/// Keys of labels: those that rules look at first and in their order, then all others by name.
[[nodiscard]] std::vector<std::string> label_keys(const Fleet& fleet);

/// The value that all these nodes have; empty: they differ or some lack it.
[[nodiscard]] std::string common_label(const Fleet& fleet, const std::vector<std::size_t>& nodes,
                                       const std::string& key);

}  // namespace tangram::cluster
