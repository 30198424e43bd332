#include "gpu_match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tangram/base/spelling.hpp"
#include "tangram/cluster/gpu_names.hpp"

namespace tangram::inventory {
namespace {

using cluster::GpuType;

/// Words of letters and digits in lower case, without vendors and brands.
std::vector<std::string> words_of(std::string_view name) {
  constexpr std::array<std::string_view, 5> kBrands = {"nvidia", "amd", "tesla", "geforce", "instinct"};
  std::vector<std::string> words(1);
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    const bool upper = c >= 'A' && c <= 'Z';
    if (digit || upper || (c >= 'a' && c <= 'z')) {
      words.back() += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  std::erase_if(words, [&](const std::string& word) { return word.empty() || std::ranges::count(kBrands, word) > 0; });
  return words;
}

std::string squeezed(std::string_view name) { return fmt::format("{}", fmt::join(words_of(name), "")); }

bool begins_with(const std::vector<std::string>& words, const std::vector<std::string>& beginning) {
  return !beginning.empty() && beginning.size() <= words.size() &&
         std::equal(beginning.begin(), beginning.end(), words.begin());
}

bool fits(const GpuType& device, Bytes memory) {
  if (memory.value() == 0) return true;
  const double ratio = memory.as_double() / device.memory.as_double();
  return ratio > 7.0 / 8 && ratio < 9.0 / 8;
}

const GpuType* named(std::span<const GpuType> devices, std::string_view name) {
  const auto found = std::ranges::find_if(devices, [&](const GpuType& device) { return device.name == name; });
  return found != devices.end() ? &*found : nullptr;
}

const GpuType* exact(std::string_view name, std::span<const GpuType> devices) {
  const std::string wanted = squeezed(name);
  for (const GpuType& device : devices) {
    if (squeezed(device.name) == wanted) return &device;
  }
  for (const cluster::DriverName& known : cluster::driver_names()) {
    if (squeezed(known.driver) == wanted) return named(devices, known.catalogue);
  }
  return nullptr;
}

}  // namespace

GpuMatch match_gpu(std::string_view name, Bytes memory, std::span<const GpuType> devices) {
  GpuMatch match;
  const GpuType* same = exact(name, devices);
  if (same != nullptr && fits(*same, memory)) return {same, {}, nullptr};
  const std::vector<std::string> words = words_of(name);
  const GpuType* last = nullptr;
  for (const GpuType& device : devices) {
    if (!begins_with(words_of(device.name), words) || !fits(device, memory)) continue;
    match.candidates.push_back(device.name);
    last = &device;
  }
  if (match.candidates.size() == 1) return {last, {}, nullptr};
  match.other = same;
  return match;
}

GpuNames::GpuNames(std::span<const GpuType> devices, const std::map<std::string, std::string, std::less<>>& given,
                   Diagnostics& mistakes)
    : devices_(devices), mistakes_(&mistakes) {
  std::vector<std::string> names;
  for (const GpuType& device : devices) names.push_back(device.name);
  for (const auto& [reported, type] : given) {
    given_[reported] = named(devices, type);
    if (given_[reported] != nullptr) continue;
    Diagnostic diagnostic;
    diagnostic.code = "unknown-gpu";
    diagnostic.message = fmt::format("there is no GPU type \"{}\"", printable(type));
    if (const auto near = closest(type, names)) diagnostic.hint = fmt::format("did you mean \"{}\"?", *near);
    mistakes.push_back(std::move(diagnostic));
  }
}

const GpuType* GpuNames::find(const io::Document& document, const Text& name, Bytes memory) {
  if (const auto given = given_.find(name.value); given != given_.end()) return given->second;
  const GpuMatch match = match_gpu(name.value, memory, devices_);
  if (match.device == nullptr && reported_.insert(name.value).second) report(document, name, memory, match);
  return match.device;
}

void GpuNames::report(const io::Document& document, const Text& name, Bytes memory, const GpuMatch& match) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  const std::string shown = printable(name.value);
  const auto option = [&](const std::string& type) {
    const bool quoted = shown.find_first_of(" '") != std::string::npos;
    return fmt::format("--gpu {0}{1}={2}{0}", quoted ? "\"" : "", shown, type);
  };
  if (!match.candidates.empty()) {
    mistakes_->push_back(error_at(document, name, "ambiguous-gpu",
                                  fmt::format("\"{}\" may be {}", shown, fmt::join(match.candidates, ", ")),
                                  fmt::format("say which: {}", option(match.candidates.front()))));
    return;
  }
  if (match.other != nullptr) {
    mistakes_->push_back(error_at(document, name, "unknown-gpu",
                                  fmt::format("\"{}\" has {:.1f} GiB here, {:.1f} GiB in the catalogue", shown,
                                              memory.as_double() / kGiB, match.other->memory.as_double() / kGiB),
                                  fmt::format("if it is what is meant: {}", option(match.other->name))));
    return;
  }
  if (name.value == "gpu") {
    mistakes_->push_back(error_at(document, name, "unknown-gpu", "the report does not say which GPUs these are",
                                  fmt::format("say so: {}", option("TYPE"))));
    return;
  }
  std::vector<std::string> names;
  for (const GpuType& device : devices_) names.push_back(device.name);
  const auto near = closest(name.value, names);
  mistakes_->push_back(error_at(document, name, "unknown-gpu",
                                fmt::format("the catalogue has no GPU type \"{}\"", shown),
                                near ? fmt::format("did you mean \"{}\"? say so: {}", *near, option(*near))
                                     : fmt::format("name a similar type of the catalogue: {}", option("TYPE"))));
}

}  // namespace tangram::inventory
