#include "messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tangram::parallelizer {
namespace {

using Json = nlohmann::json;

const Json* member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string text_of(const Json& object, const char* key, const std::string& otherwise = {}) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : otherwise;
}

bool flag_of(const Json& object, const char* key, bool otherwise) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : otherwise;
}

int count_of(const Json& object, const char* key, int otherwise) {
  const Json* value = member(object, key);
  if (value == nullptr || !value->is_number_integer()) return otherwise;
  return static_cast<int>(std::clamp<std::int64_t>(value->get<std::int64_t>(), 1, otherwise));
}

bool speaks(const Json& hello, int protocol) {
  const Json* said = member(hello, "protocol");
  if (said == nullptr) return false;
  if (said->is_array()) return std::ranges::find(*said, Json(protocol)) != said->end();
  return *said == Json(protocol);
}

Message garbage(std::string why) {
  Message message;
  message.text = std::move(why);
  return message;
}

Capabilities capabilities_of(const Json& said) {
  Capabilities result;
  if (!said.is_object()) return result;
  result.powers_of_two = text_of(said, "shapes") == "powers_of_two";
  result.max_gpus = count_of(said, "max_gpus", result.max_gpus);
  result.max_nodes = count_of(said, "max_nodes", result.max_nodes);
  result.cancel = flag_of(said, "cancel", false);
  if (const Json* list = member(said, "techniques"); list != nullptr && list->is_array()) {
    for (const Json& name : *list) {
      if (name.is_string()) result.techniques.push_back(name.get<std::string>());
    }
  }
  return result;
}

Message hello_of(const Json& said) {
  if (!speaks(said, kProtocol)) {
    const Json* protocol = member(said, "protocol");
    return garbage(fmt::format("hello is of protocol {}, this host speaks {}",
                               protocol == nullptr ? "(not said)" : excerpt(protocol->dump()), kProtocol));
  }
  Message message;
  message.type = MessageType::kHello;
  message.info.name = text_of(said, "name");
  message.info.version = text_of(said, "version", "?");
  message.info.deterministic = flag_of(said, "deterministic", true);
  if (const Json* capabilities = member(said, "capabilities")) {
    message.info.capabilities = capabilities_of(*capabilities);
  }
  if (message.info.name.empty()) return garbage("hello has no \"name\"");
  return message;
}

}  // namespace

std::string load_line(const Material& material) {
  return fmt::format("{{\"type\":\"load\",\"digest\":\"{}\",{}}}\n", material.digest, material.members);
}

std::string solve_line(std::int64_t id, std::int64_t deadline_ms, const Question& question) {
  return fmt::format("{{\"type\":\"solve\",\"id\":{},\"deadline_ms\":{},{}}}\n", id, deadline_ms, question.body);
}

std::string cancel_line(std::int64_t id) { return fmt::format("{{\"type\":\"cancel\",\"id\":{}}}\n", id); }

std::string bye_line() { return "{\"type\":\"bye\"}\n"; }

std::string hello_line(const PluginInfo& info) {
  const Capabilities& can = info.capabilities;
  const Json capabilities{{"shapes", can.powers_of_two ? "powers_of_two" : "any"},
                          {"max_gpus", can.max_gpus},
                          {"max_nodes", can.max_nodes},
                          {"techniques", can.techniques},
                          {"cancel", can.cancel}};
  const Json hello{{"type", "hello"},
                   {"protocol", kProtocol},
                   {"name", info.name},
                   {"version", info.version},
                   {"deterministic", info.deterministic},
                   {"capabilities", capabilities}};
  return hello.dump() + "\n";
}

std::string excerpt(std::string_view text, std::size_t most) {
  std::string result(text.substr(0, most));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '.';
  }
  if (text.size() > most) result += "...";
  return result;
}

Message read_message(std::string_view line) {
  const Json said = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (said.is_discarded()) return garbage(fmt::format("not JSON: {}", excerpt(line)));
  if (!said.is_object()) return garbage(fmt::format("not an object: {}", excerpt(line)));
  const std::string type = text_of(said, "type");
  if (type == "hello") return hello_of(said);
  Message message;
  message.type = MessageType::kOther;
  message.text = text_of(said, "message");
  if (const Json* id = member(said, "id"); id != nullptr && id->is_number_integer())
    message.id = id->get<std::int64_t>();
  if (type == "unavailable") message.type = MessageType::kUnavailable;
  if (type == "progress") message.type = MessageType::kProgress;
  if (type == "result" || type == "error") {
    if (!message.id) return garbage(fmt::format("{} without an \"id\"", type));
    message.type = MessageType::kAnswer;
  }
  if (type.empty()) return garbage(fmt::format("no \"type\": {}", excerpt(line)));
  return message;
}

}  // namespace tangram::parallelizer
