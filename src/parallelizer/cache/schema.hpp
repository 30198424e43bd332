// The tables of the answer cache. Goes in: a database file that was just opened. Comes out: one that has them, or a
// SqlError; a file that is not a cache is not written to.
#pragma once

#include "database.hpp"

namespace tangram::parallelizer {

inline constexpr int kSchemaVersion = 1;

/// In write-ahead mode: readers and one writer do not wait for each other, and a process that is killed loses nothing
/// that was committed.
void prepare(const Database& database);

}  // namespace tangram::parallelizer
