// What holds at a place of a kernel. Goes in: what instructions and branches do. Comes out: the values of registers,
// and which threads are there.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "domain.hpp"
#include "value.hpp"

namespace tangram::ptx {

struct State {
  std::vector<Value> registers;
  std::map<std::pair<int, std::int64_t>, Value> arguments;  ///< of calls, by variable and offset
  Domain domain;
};

}  // namespace tangram::ptx
