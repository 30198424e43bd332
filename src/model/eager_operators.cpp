#include "tangram/model/eager_operators.hpp"

#include "tangram/base/enum_names.hpp"

namespace tangram::model {

std::vector<std::string_view> names_of(const EagerOperators& operators) {
  for (const auto& [name, named] : kNamedEagerOperators) {
    if (operators == named) return {name};
  }
  return names_in(kEagerOperatorNames, operators);
}

}  // namespace tangram::model
