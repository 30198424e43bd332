// Numbers in lists in lists, as planners write their plans. Goes in: nodes of a document. Comes out: numbers; what is
// none is reported at its place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tangram/import/job.hpp"
#include "tangram/io/document.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::importing {

/// The one job file of a request, as JSON; empty after a mistake.
[[nodiscard]] std::optional<io::Document> parse_job(const std::vector<const SourceFile*>& files, Diagnostics& sink);

class Lists {
 public:
  Lists(const io::Document& document, Diagnostics& sink) : document_(&document), sink_(&sink) {}

  [[nodiscard]] bool good() const { return sink_->empty(); }
  [[nodiscard]] Diagnostics& sink() { return *sink_; }
  [[nodiscard]] Place place(const io::Node& node) const;
  void complain(const io::Node& node, std::string code, std::string message, std::string hint = {});

  /// A member that has to be there; null after a mistake.
  const io::Node* member(const io::Node& object, const std::string& key, const std::string& hint = {});
  /// Nothing after a mistake.
  const std::vector<io::Node>& items(const io::Node* list, const std::string& what);
  /// 1 after a mistake.
  std::int64_t count(const io::Node& node, io::IntegerRange range = io::kCount);
  std::vector<std::int64_t> counts(const io::Node* list, const std::string& what, io::IntegerRange range = io::kCount);

 private:
  const io::Document* document_;
  Diagnostics* sink_;
};

}  // namespace tangram::importing
