#include "xml.hpp"

#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace tangram::inventory {
namespace {

constexpr std::size_t kMostLevels = 64;

// Newer releases of expat (2.9) count lines and columns in 64 bits everywhere and deprecate the functions that do not.
template <class Parser>
int line_number(Parser parser) {
  if constexpr (requires { XML_GetCurrentLineNumber64(parser); }) {
    return static_cast<int>(XML_GetCurrentLineNumber64(parser));
  } else {
    return static_cast<int>(XML_GetCurrentLineNumber(parser));
  }
}

template <class Parser>
int column_number(Parser parser) {
  if constexpr (requires { XML_GetCurrentColumnNumber64(parser); }) {
    return static_cast<int>(XML_GetCurrentColumnNumber64(parser));
  } else {
    return static_cast<int>(XML_GetCurrentColumnNumber(parser));
  }
}

/// Builds the tree from the parser's events; the parser stops at the first mistake.
class Builder {
 public:
  Builder(XML_Parser parser, const io::Document& document) : parser_(parser), document_(document) {
    XML_SetUserData(parser_, this);
    XML_SetElementHandler(parser_, &Builder::on_start, &Builder::on_end);
    XML_SetCharacterDataHandler(parser_, &Builder::on_text);
    XML_SetEntityDeclHandler(parser_, &Builder::on_entity);
  }

  Expected<XmlElement> parse() {
    const std::string& text = document_.text;
    if (!std::in_range<int>(text.size())) {
      return fail(error_at(document_, Text{}, "too-large", "the file is larger than 2 GiB"));
    }
    const auto status = XML_Parse(parser_, text.data(), static_cast<int>(text.size()), XML_TRUE);
    if (mistake_) return fail(*std::move(mistake_));
    if (status != XML_STATUS_OK) {
      return fail(error_at(document_, here({}), "bad-xml",
                           fmt::format("not XML: {}", XML_ErrorString(XML_GetErrorCode(parser_))),
                           "give what nvidia-smi -q -x prints, whole"));
    }
    return std::move(root_);
  }

 private:
  [[nodiscard]] Text here(std::string value) const {
    return {std::move(value), line_number(parser_), column_number(parser_) + 1};
  }

  void stop(Diagnostic mistake) {
    if (!mistake_) mistake_ = std::move(mistake);
    XML_StopParser(parser_, XML_FALSE);
  }

  static void on_start(void* self, const XML_Char* name, const XML_Char**) {
    auto& builder = *static_cast<Builder*>(self);
    if (builder.open_.size() >= kMostLevels) {
      return builder.stop(error_at(builder.document_, builder.here({}), "too-deep",
                                   fmt::format("more than {} levels of elements", kMostLevels)));
    }
    XmlElement element;
    element.name = builder.here(name);
    ++element.name.column;  // behind "<"
    builder.open_.push_back(std::move(element));
  }

  static void on_end(void* self, const XML_Char*) {
    auto& builder = *static_cast<Builder*>(self);
    XmlElement element = std::move(builder.open_.back());
    builder.open_.pop_back();
    element.content.value = trimmed(element.content.value);
    (builder.open_.empty() ? builder.root_ : builder.open_.back().children.emplace_back()) = std::move(element);
  }

  static void on_text(void* self, const XML_Char* text, int length) {
    auto& builder = *static_cast<Builder*>(self);
    if (builder.open_.empty()) return;
    Text& content = builder.open_.back().content;
    const std::string_view piece(text, static_cast<std::size_t>(length));
    if (content.line == 0 && !trimmed(piece).empty()) {
      content = builder.here({});
      content.column += static_cast<int>(piece.find_first_not_of(" \t\r\n"));
    }
    content.value += piece;
  }

  static void on_entity(void* self, const XML_Char*, int, const XML_Char*, int, const XML_Char*, const XML_Char*,
                        const XML_Char*, const XML_Char*) {
    auto& builder = *static_cast<Builder*>(self);
    builder.stop(error_at(builder.document_, builder.here({}), "bad-xml", "it declares entities of its own",
                          "give what nvidia-smi -q -x prints"));
  }

  XML_Parser parser_;
  const io::Document& document_;
  std::vector<XmlElement> open_;
  XmlElement root_;
  std::optional<Diagnostic> mistake_;
};

}  // namespace

const XmlElement* XmlElement::find(std::string_view child) const {
  const auto found = std::ranges::find_if(children, [&](const XmlElement& e) { return e.name.value == child; });
  return found != children.end() ? &*found : nullptr;
}

const XmlElement* XmlElement::find(std::initializer_list<std::string_view> path) const {
  const XmlElement* element = this;
  for (const std::string_view step : path) {
    if (element != nullptr) element = element->find(step);
  }
  return element;
}

Expected<XmlElement> parse_xml(const io::Document& document) {
  const std::unique_ptr<std::remove_pointer_t<XML_Parser>, void (*)(XML_Parser)> parser(XML_ParserCreate("UTF-8"),
                                                                                        &XML_ParserFree);
  if (!parser) throw std::bad_alloc();
  return Builder(parser.get(), document).parse();
}

}  // namespace tangram::inventory
