#include "yaml_syntax.hpp"

#include <yaml-cpp/exceptions.h>

#include <algorithm>
#include <array>
#include <optional>

namespace tangram::io {

namespace {

struct Translation {
  const char* library;
  const char* message;
  const char* hint;
};

namespace msg = YAML::ErrorMsg;

constexpr const char* kIndentation = "check the indentation: keys of one mapping start in the same column";
constexpr const char* kAlias = "write the value out, or quote a text that starts with *";
constexpr const char* kAnchor = "write the value out, or quote a text that starts with &";
constexpr const char* kTag = "leave it out, or quote a text that starts with !";
constexpr const char* kQuote = "quote a text that holds \": \" or starts with a special character";

const std::array kTranslations{
    Translation{msg::END_OF_MAP, "this does not continue the mapping above", kIndentation},
    Translation{msg::END_OF_SEQ, "this does not continue the sequence above", kIndentation},
    Translation{msg::END_OF_MAP_FLOW, "the mapping is not closed", "end it with }"},
    Translation{msg::END_OF_SEQ_FLOW, "the sequence is not closed", "end it with ]"},
    Translation{msg::FLOW_END, "closing bracket without an opening one", ""},
    Translation{msg::MAP_KEY, "a mapping cannot start here", kIndentation},
    Translation{msg::MAP_VALUE, "a mapping value cannot start here",
                "check the indentation, and quote a text that holds \": \""},
    Translation{msg::BLOCK_ENTRY, "a sequence item cannot start here", kIndentation},
    Translation{msg::TAB_IN_INDENTATION, "tab in the indentation", "indent with spaces"},
    Translation{msg::EOF_IN_SCALAR, "the quoted text is not closed", "end it with its quote"},
    Translation{msg::DOC_IN_SCALAR, "a document marker inside a quoted text", "close the text before it"},
    Translation{msg::CHAR_IN_SCALAR, "this character cannot stand here", kQuote},
    Translation{msg::UNKNOWN_TOKEN, "this character cannot start a value", kQuote},
    Translation{msg::INVALID_HEX, "malformed hexadecimal escape", "write the character itself"},
    Translation{msg::INVALID_ESCAPE, "unknown escape", "write \\\\ for a backslash"},
    Translation{msg::INVALID_UNICODE, "escape of a character that does not exist", "write the character itself"},
    Translation{msg::CHAR_IN_BLOCK, "unexpected text behind the block mark", "start the text on the next line"},
    Translation{msg::ZERO_INDENT_IN_BLOCK, "a block text cannot have indentation zero", ""},
    Translation{msg::YAML_DIRECTIVE_ARGS, "malformed %YAML directive", "leave it out"},
    Translation{msg::YAML_MAJOR_VERSION, "unsupported YAML version", "write %YAML 1.2 or leave it out"},
    Translation{msg::REPEATED_YAML_DIRECTIVE, "repeated %YAML directive", "leave it out"},
    Translation{msg::TAG_DIRECTIVE_ARGS, "malformed %TAG directive", "leave it out"},
    Translation{msg::REPEATED_TAG_DIRECTIVE, "repeated %TAG directive", "leave it out"},
    Translation{msg::UNKNOWN_ANCHOR, "aliases are not supported", kAlias},
    Translation{msg::ALIAS_NOT_FOUND, "aliases are not supported", kAlias},
    Translation{msg::CHAR_IN_ALIAS, "aliases are not supported", kAlias},
    Translation{msg::ALIAS_CONTENT, "aliases are not supported", kAlias},
    Translation{msg::ANCHOR_NOT_FOUND, "anchors are not supported", kAnchor},
    Translation{msg::CHAR_IN_ANCHOR, "anchors are not supported", kAnchor},
    Translation{msg::MULTIPLE_ANCHORS, "anchors are not supported", kAnchor},
    Translation{msg::MULTIPLE_TAGS, "tags are not supported", kTag},
    Translation{msg::CHAR_IN_TAG_HANDLE, "tags are not supported", kTag},
    Translation{msg::TAG_WITH_NO_SUFFIX, "tags are not supported", kTag},
    Translation{msg::END_OF_VERBATIM_TAG, "tags are not supported", kTag},
};

// The tab in front of the first other character of the line at `at`, if there is one. The library reads over it and
// fails behind it.
std::optional<std::size_t> tab_in_indentation(std::string_view text, std::size_t at) {
  const std::size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  const std::size_t start = before == std::string_view::npos ? 0 : before + 1;
  const std::size_t tab = text.find_first_not_of(' ', start);
  if (tab == std::string_view::npos || text[tab] != '\t') return std::nullopt;
  return tab;
}

}  // namespace

YamlFailure explain_yaml_failure(std::string_view text, std::string_view library_message, std::size_t at) {
  at = std::min(at, end_of_content(text));
  const auto tab = tab_in_indentation(text, at);
  if (tab) return {{*tab, 1}, "tab in the indentation", "indent with spaces"};
  // The library reports an escape behind its two characters.
  const bool escape = library_message.starts_with(msg::INVALID_ESCAPE) && at >= 2 && text[at - 2] == '\\';
  const Span span = escape ? Span{at - 2, 2} : Span{at, 1};
  for (const Translation& entry : kTranslations) {
    // Some of the library's messages go on with the offending text.
    if (library_message.starts_with(entry.library)) return {span, entry.message, entry.hint};
  }
  return {span, "this is not YAML", {}};
}

}  // namespace tangram::io
