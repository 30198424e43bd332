#include "tangram/picture/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"

namespace tangram::picture {

/// Embedded: page.css and page.js.
std::vector<std::pair<std::string_view, std::string_view>> page_files();

namespace {

/// Browsers load nothing from anywhere, even if the page said so.
constexpr std::string_view kPolicy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

Markup head_of(const Page& page) {
  return element("meta", {{"charset", "utf-8"}}) +
         element("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}}) +
         element("meta", {{"http-equiv", "Content-Security-Policy"}, {"content", kPolicy}}) +
         element("title", {}, page.title);
}

}  // namespace

std::string written(const Page& page) {
  const auto files = page_files();
  const std::string script = page.has_timelines ? fmt::format("<script>\n{}</script>\n", at(files, 1).second) : "";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head>{}\n<style>\n{}</style></head>\n<body>{}\n{}</body></html>\n",
      head_of(page).html(), at(files, 0).second, element("main", {}, page.body).html(), script);
}

Markup section(std::string_view heading, const Markup& content) {
  return element("section", {}, element("h2", {}, heading) + content);
}

Markup paragraph(std::string_view plain) { return element("p", {}, plain); }

Markup facts(const std::vector<Fact>& entries) {
  Markup items;
  for (const Fact& fact : entries) items += element("dt", {}, fact.label) + element("dd", {}, fact.text);
  return element("dl", {{"class", "facts"}}, items);
}

Markup table(const std::vector<TableColumn>& columns, const std::vector<std::vector<Markup>>& rows) {
  const auto cell = [&](std::string_view name, std::size_t column, const Markup& content) {
    return element(name, {{"class", at(columns, column).is_number ? "n" : ""}}, content);
  };
  Markup head;
  for (std::size_t c = 0; c < columns.size(); ++c) head += cell("th", c, text(columns[c].header));
  Markup body;
  for (const std::vector<Markup>& row : rows) {
    TANGRAM_ASSERT(row.size() == columns.size());
    Markup cells;
    for (std::size_t c = 0; c < columns.size(); ++c) cells += cell("td", c, row[c]);
    body += element("tr", {}, cells);
  }
  const Markup whole = element("thead", {}, element("tr", {}, head)) + element("tbody", {}, body);
  return element("div", {{"class", "scroll"}}, element("table", {}, whole));
}

Markup meter(double share, std::string_view title) {
  const std::string width = fmt::format("width:{}%", number(100 * std::clamp(share, 0.0, 1.0)));
  return element("div", {{"class", "meter"}, {"role", "img"}, {"aria-label", title}, {"title", title}},
                 element("i", {{"style", width}}));
}

}  // namespace tangram::picture
