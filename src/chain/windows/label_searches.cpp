#include "label_searches.hpp"

namespace tangram::chain {

LabelAnswer LabelSearches::search(const CompletionBound& bound, const LabelQuery& query) {
  LabelAnswer answer = search_labels(ground_, bound, query);
  result_.states += answer.states;
  result_.cuts += answer.cuts;
  return answer;
}

LabelAnswer LabelSearches::exact(const CompletionBound& bound, const LabelQuery& query) {
  LabelAnswer answer = search(bound, query);
  result_.labels += answer.labels;
  return answer;
}

LabelAnswer LabelSearches::relaxed(const CompletionBound& bound, const LabelQuery& query) {
  if (bound.root() == kNoCompletion || bound.root() > static_cast<double>(query.cutoff) + 1.0) return {};
  return exact(bound, query);
}

LabelAnswer LabelSearches::beam(const CompletionBound& bound, const LabelQuery& query) {
  LabelAnswer answer = search(bound, query);
  result_.beam_labels += answer.labels;
  return answer;
}

}  // namespace tangram::chain
