// One function per format. Goes in: its files. Comes out: the job; mistakes with their places in the sink.
#pragma once

#include "rank_files.hpp"
#include "tangram/import/job.hpp"

namespace tangram::importing {

[[nodiscard]] Job read_megatron(SortedFiles files, Diagnostics& sink);
[[nodiscard]] Job read_mimo(SortedFiles files, Diagnostics& sink);
[[nodiscard]] Job read_flagscale(SortedFiles files, Diagnostics& sink);
[[nodiscard]] Job read_galvatron(SortedFiles files, Diagnostics& sink);
[[nodiscard]] Job read_flashflex(SortedFiles files, Diagnostics& sink);

/// `rank`: which plan of a file with several, from 1.
[[nodiscard]] Job read_sailor(SortedFiles files, std::int64_t rank, Diagnostics& sink);
[[nodiscard]] Job read_metis(SortedFiles files, std::int64_t rank, Diagnostics& sink);

}  // namespace tangram::importing
