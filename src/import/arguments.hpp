// Megatron-LM's arguments, whatever file they stand in. Goes in: a shell script or a list of words; or (by set) the
// keys of a YAML file. Comes out: values by name, with their places.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tangram/import/job.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::importing {

struct Argument {
  std::string value;  ///< empty: a switch
  Place place;
  std::vector<std::string> rest = {};  ///< of several values, those behind the first

  [[nodiscard]] std::vector<std::string> values() const;
};

class ArgumentMap {
 public:
  ArgumentMap(Place file, Diagnostics& sink) : file_(std::move(file)), sink_(&sink) {}

  /// The last one of a name counts, as in argparse.
  void set(const std::string& name, Argument argument) { arguments_[name] = std::move(argument); }
  /// One value more of an argument that is set.
  void add_value(const std::string& name, std::string value) { arguments_[name].rest.push_back(std::move(value)); }

  [[nodiscard]] bool empty() const { return arguments_.empty(); }
  [[nodiscard]] const Argument* find(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const { return find(name) != nullptr; }
  [[nodiscard]] std::string text_or(const std::string& name, const std::string& fallback) const;
  /// From 1 to `most`; a mistake is reported, and `fallback` returned.
  std::int64_t count_or(const std::string& name, std::int64_t fallback, std::int64_t most = io::kCount.max);
  /// The same; a missing one is a mistake.
  std::int64_t count(const std::string& name);
  /// Of the argument; of the file where there is none.
  [[nodiscard]] Place place_of(const std::string& name) const;
  void error_at(const std::string& name, std::string code, std::string message, std::string hint = {});
  [[nodiscard]] const std::map<std::string, Argument>& all() const { return arguments_; }
  [[nodiscard]] Diagnostics& sink() { return *sink_; }

 private:
  std::map<std::string, Argument> arguments_;
  Place file_;
  Diagnostics* sink_;
};

/// All words of a script, in its order.
[[nodiscard]] std::vector<Argument> words_of(const SourceFile& file);

/// Words as a shell makes them of a script: quotes, escapes, comments, variables that the script itself sets.
void read_arguments(const SourceFile& file, ArgumentMap& arguments);

}  // namespace tangram::importing
