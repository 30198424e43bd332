#include "tangram/import/import.hpp"

#include <array>

#include "megatron_job.hpp"
#include "tangram/base/assert.hpp"

namespace tangram::importing {

namespace {

constexpr std::array kSources{SourceName{"megatron", Source::kMegatron}, SourceName{"flagscale", Source::kFlagscale}};

Job read(Source source, SortedFiles files, Diagnostics& sink) {
  switch (source) {
    case Source::kMegatron: return read_megatron(std::move(files), sink);
    case Source::kFlagscale: return read_flagscale(std::move(files), sink);
  }
  TANGRAM_ASSERT(false);
  return {};
}

}  // namespace

std::span<const SourceName> source_names() { return kSources; }

ReadJob::ReadJob(std::unique_ptr<const Job> job) : job_(std::move(job)) {}
ReadJob::ReadJob(ReadJob&& other) noexcept = default;
ReadJob& ReadJob::operator=(ReadJob&& other) noexcept = default;
ReadJob::~ReadJob() = default;

const model::JobOverrides& ReadJob::overrides() const { return job_->overrides; }

Expected<ReadJob> read_job(Source source, const std::vector<SourceFile>& files) {
  Diagnostics sink;
  SortedFiles sorted = sort_files(files, sink);
  if (!sink.empty()) return fail(std::move(sink));
  Job job = read(source, std::move(sorted), sink);
  if (!sink.empty()) return fail(std::move(sink));
  return ReadJob(std::make_unique<const Job>(std::move(job)));
}

}  // namespace tangram::importing
