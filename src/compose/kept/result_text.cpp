#include "result_text.hpp"

#include "as_json.hpp"

namespace tangram::compose {

std::optional<std::string> write_result(const SearchResult& result) {
  try {
    return kept::to_json(result).dump();
  } catch (const kept::Json::exception&) {
    return std::nullopt;
  }
}

std::optional<SearchResult> read_result(const std::string& text) {
  SearchResult result;
  const kept::Json json = kept::Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return kept::from_json(json, result) ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace tangram::compose
