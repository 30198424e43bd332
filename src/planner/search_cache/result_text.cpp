#include "result_text.hpp"

#include "as_json.hpp"

namespace tangram::planner {

std::optional<std::string> write_result(const compose::SearchResult& result) {
  try {
    return search_cache::to_json(result).dump();
  } catch (const search_cache::Json::exception&) {
    return std::nullopt;
  }
}

std::optional<compose::SearchResult> read_result(const std::string& text) {
  compose::SearchResult result;
  const search_cache::Json json = search_cache::Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return search_cache::from_json(json, result) ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace tangram::planner
