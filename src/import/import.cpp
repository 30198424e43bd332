#include "tangram/import/import.hpp"

#include <array>

#include "readers.hpp"
#include "tangram/base/assert.hpp"
#include "tangram/io/limits.hpp"

namespace tangram::importing {

namespace {

constexpr std::array kSources{SourceName{"megatron", Source::kMegatron},   SourceName{"mimo", Source::kMimo},
                              SourceName{"flagscale", Source::kFlagscale}, SourceName{"sailor", Source::kSailor},
                              SourceName{"galvatron", Source::kGalvatron}, SourceName{"flashflex", Source::kFlashflex},
                              SourceName{"metis", Source::kMetis}};

Job read(Source source, SortedFiles files, std::int64_t rank, Diagnostics& sink) {
  switch (source) {
    case Source::kMegatron: return read_megatron(std::move(files), sink);
    case Source::kMimo: return read_mimo(std::move(files), sink);
    case Source::kFlagscale: return read_flagscale(std::move(files), sink);
    case Source::kSailor: return read_sailor(std::move(files), rank, sink);
    case Source::kGalvatron: return read_galvatron(std::move(files), sink);
    case Source::kFlashflex: return read_flashflex(std::move(files), sink);
    case Source::kMetis: return read_metis(std::move(files), rank, sink);
  }
  TANGRAM_ASSERT(false);
  return {};
}

constexpr std::int64_t kLargestBatch = io::integer_limit("global_batch_samples").max;

bool has_too_large_batch(const Job& job) {
  return job.overrides.global_batch && *job.overrides.global_batch > kLargestBatch;
}

Diagnostic too_large_batch(const std::vector<SourceFile>& files, std::int64_t samples) {
  Diagnostic diagnostic;
  diagnostic.code = "out-of-range";
  diagnostic.where.file = files.empty() ? "" : files.front().path;
  diagnostic.message =
      "a batch of " + std::to_string(samples) + " samples, at most " + std::to_string(kLargestBatch) + " are taken";
  diagnostic.hint = io::integer_limit("global_batch_samples").why;
  return diagnostic;
}

}  // namespace

std::span<const SourceName> source_names() { return kSources; }

ReadJob::ReadJob(std::unique_ptr<const Job> job) : job_(std::move(job)) {}
ReadJob::ReadJob(ReadJob&& other) noexcept = default;
ReadJob& ReadJob::operator=(ReadJob&& other) noexcept = default;
ReadJob::~ReadJob() = default;

const model::JobOverrides& ReadJob::overrides() const { return job_->overrides; }

Expected<ReadJob> read_job(Source source, const std::vector<SourceFile>& files, std::int64_t rank) {
  Diagnostics sink;
  SortedFiles sorted = sort_files(files, sink);
  if (!sink.empty()) return fail(std::move(sink));
  Job job = read(source, std::move(sorted), rank, sink);
  if (has_too_large_batch(job)) sink.push_back(too_large_batch(files, *job.overrides.global_batch));
  if (!sink.empty()) return fail(std::move(sink));
  return ReadJob(std::make_unique<const Job>(std::move(job)));
}

}  // namespace tangram::importing
