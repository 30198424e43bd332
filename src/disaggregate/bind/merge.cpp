#include "merge.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::disaggregate {

namespace {

// By kernel: the number of the one that it becomes.
std::vector<int> merged_numbers(int kernels, const std::vector<KernelRange>& ranges) {
  std::vector<char> joins_next(static_cast<std::size_t>(kernels), 0);
  for (const KernelRange& range : ranges) {
    for (int k = range.first; k < range.last; ++k) at(joins_next, k) = 1;
  }
  std::vector<int> numbers;
  int number = 0;
  for (int k = 0; k < kernels; ++k) {
    numbers.push_back(number);
    if (at(joins_next, k) == 0) ++number;
  }
  return numbers;
}

void append(Kernel& kernel, const Kernel& next) {
  kernel.name += '+' + next.name;
  kernel.error = std::max(kernel.error, next.error);
  for (std::size_t c = 0; c < kernel.seconds.size(); ++c) kernel.seconds[c] += next.seconds[c];
}

std::vector<Buffer> renumbered(const std::vector<Buffer>& buffers, const std::vector<int>& number) {
  std::vector<Buffer> result;
  for (Buffer buffer : buffers) {
    std::set<int> readers;
    for (const int reader : buffer.readers) readers.insert(at(number, reader));
    if (buffer.writer >= 0) {
      buffer.writer = at(number, buffer.writer);
      readers.erase(buffer.writer);
      if (readers.empty()) continue;
    }
    buffer.readers.assign(readers.begin(), readers.end());
    result.push_back(std::move(buffer));
  }
  return result;
}

}  // namespace

Problem merged(const Problem& problem, const std::vector<KernelRange>& ranges) {
  const std::vector<int> number = merged_numbers(problem.kernel_count(), ranges);
  Problem result = problem;
  result.kernels.clear();
  for (int k = 0; k < problem.kernel_count(); ++k) {
    if (at(number, k) == result.kernel_count()) {
      result.kernels.push_back(at(problem.kernels, k));
    } else {
      append(result.kernels.back(), at(problem.kernels, k));
    }
  }
  result.buffers = renumbered(problem.buffers, number);
  std::erase_if(result.repeats, [&](const Repeat& repeat) {
    return std::ranges::any_of(ranges, [&](const KernelRange& range) {
      return range.first < range.last && range.first < repeat.first + repeat.kernels * repeat.times &&
             range.last >= repeat.first;
    });
  });
  for (Repeat& repeat : result.repeats) repeat.first = at(number, repeat.first);
  return result;
}

}  // namespace tangram::disaggregate
