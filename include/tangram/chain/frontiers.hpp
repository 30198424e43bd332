// Whole frontiers of a program, made when they are first needed. Goes in: a program whose frontiers may be relaxed
// ones, and the function that makes them whole. Most (option, signature) pairs are cut by the bound and never asked
// for.
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/chain/program.hpp"

namespace tangram::chain {

class Frontiers {
 public:
  Frontiers(const Program& program, const Refine& refine) : program_(program), refine_(refine) {
    if (!refine_) return;
    whole_.resize(program.frontiers.size());
    ready_.assign(program.frontiers.size(), 0);
  }

  [[nodiscard]] const std::vector<Candidate>& whole(int option, int signature) {
    if (!refine_) return program_.frontier(option, signature);
    const auto at = static_cast<std::size_t>(option) * static_cast<std::size_t>(program_.signatures) +
                    static_cast<std::size_t>(signature);
    if (ready_[at] == 0) {
      whole_[at] = refine_(option, signature);
      ready_[at] = 1;
      made_ += static_cast<std::int64_t>(whole_[at].size());
    }
    return whole_[at];
  }
  [[nodiscard]] std::int64_t made() const { return made_; }

 private:
  const Program& program_;
  const Refine& refine_;
  std::vector<std::vector<Candidate>> whole_;
  std::vector<std::uint8_t> ready_;
  std::int64_t made_ = 0;
};

}  // namespace tangram::chain
