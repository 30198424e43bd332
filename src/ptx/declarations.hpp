// Declarations of variables and parameters. Goes in: the cursor before one. Comes out: the variable.
#pragma once

#include "cursor.hpp"
#include "tangram/ptx/program.hpp"

namespace tangram::ptx {

/// The space that a directive declares variables in: "global", "const", "shared", "local", "param", "tex"; nullopt
/// of others. Suffixes such as "shared::cta" do not count.
[[nodiscard]] std::optional<Space> space_named(std::string_view directive);

/// `.global .align 4 .f32 a[16] = {0f3F800000}, b;` from the space on, with its semicolon.
[[nodiscard]] std::vector<Variable> parse_variables(Cursor& cursor, bool is_external);

/// `.param .u64 .ptr .global .align 16 a`, or `.reg .b32 a`, without what follows.
[[nodiscard]] Variable parse_parameter(Cursor& cursor);

/// A type directive; kB32 after reporting that there is none. `elements`: of .v2 and .v4 before it.
[[nodiscard]] Type parse_type(Cursor& cursor, int& elements);

}  // namespace tangram::ptx
