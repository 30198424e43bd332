// The tables of the cache. Goes in: a database file that was just opened. Comes out: one that has them, or a SqlError;
// a file that is not a cache is not written to.
#pragma once

#include "tangram/cache/database.hpp"

namespace tangram::cache {

inline constexpr int kSchemaVersion = 2;

/// In write-ahead mode: readers and one writer do not wait for each other, and a process that is killed loses nothing
/// that was committed.
void prepare(const Database& database);

}  // namespace tangram::cache
