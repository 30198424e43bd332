// The lines of protocol 1. Goes in: what to say, or a line that came. Comes out: a line, or what it says. One JSON
// object a line, "type" says which; members that are not known are ignored.
//
//   plugin  {"type":"hello","protocol":1,"name":...,"version":...,"deterministic":...,"capabilities":{...}}
//           {"type":"unavailable","message":...}                                 instead of hello
//   host    {"type":"load","digest":...,"model":{...} | "shape":{...} | "profiles":[...]}
//           {"type":"solve","id":...,"deadline_ms":...,"model":digest,"shape":digest,"slice":{...},...}
//   plugin  {"type":"result","id":...,"plans":[...]}
//           {"type":"error","id":...,"code":"infeasible"|"unsupported"|"bad_request"|"internal","message":...}
//           {"type":"progress","id":...,"message":...}
//   host    {"type":"cancel","id":...}    {"type":"bye"}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tangram/parallelizer/plugin.hpp"

namespace tangram::parallelizer {

[[nodiscard]] std::string load_line(const Material& material);
[[nodiscard]] std::string solve_line(std::int64_t id, std::int64_t deadline_ms, const Question& question);
[[nodiscard]] std::string cancel_line(std::int64_t id);
[[nodiscard]] std::string bye_line();
/// What a plugin that says `info` of itself says; read_message reads it back.
[[nodiscard]] std::string hello_line(const PluginInfo& info);

enum class MessageType : std::uint8_t { kHello, kUnavailable, kAnswer, kProgress, kOther, kGarbage };

struct Message {
  MessageType type = MessageType::kGarbage;
  std::optional<std::int64_t> id;
  std::string text;  ///< unavailable, progress: the message; garbage: what is wrong with it
  PluginInfo info;   ///< hello
};

[[nodiscard]] Message read_message(std::string_view line);

/// At most so much of a line is quoted in errors; control characters become dots.
[[nodiscard]] std::string excerpt(std::string_view text, std::size_t most = 60);

}  // namespace tangram::parallelizer
