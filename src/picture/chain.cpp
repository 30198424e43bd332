#include "tangram/picture/chain.hpp"

#include "tangram/base/assert.hpp"

namespace tangram::picture {

namespace {

Markup part_of(const BoxPart& part) {
  Markup out = element("p", {{"class", "part"}}, element("i", {{"class", css_class(part.mark)}}) + text(part.name));
  out += facts(part.facts);
  if (!part.fill_text.empty()) {
    out += meter(part.fill, part.fill_text) + element("p", {{"class", "filled"}}, part.fill_text);
  }
  return out;
}

Markup box_of(const Box& box) {
  Markup tags;
  for (const std::string& tag : box.tags) tags += element("span", {{"class", "tag"}}, tag);
  Markup out = element("h3", {}, text(box.title) + element("span", {{"class", "dim"}}, box.note) + tags);
  for (const BoxPart& part : box.parts) out += part_of(part);
  return element("div", {{"class", box.is_marked ? "box marked" : "box"}}, out);
}

Markup flow_of(const Flow& flow) {
  return element("div", {{"class", "flow"}, {"title", flow.title}},
                 element("span", {}, flow.above) + element("i", {}) + element("span", {}, flow.below));
}

}  // namespace

Markup chain(const std::vector<Box>& boxes, const std::vector<Flow>& flows) {
  TANGRAM_ASSERT(boxes.empty() || flows.size() + 1 == boxes.size());
  Markup items;
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    items += element("li", {}, box_of(boxes[b]) + (b < flows.size() ? flow_of(flows[b]) : Markup()));
  }
  return element("ol", {{"class", "chain"}}, items);
}

}  // namespace tangram::picture
