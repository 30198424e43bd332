// Timelines are zoomed by buttons and moved by dragging. No angle bracket to the left and no ampersand: the page is XML
// as well.
for (const figure of document.querySelectorAll("figure.timeline")) {
  const drawing = figure.querySelector("svg");
  const plot = figure.querySelector("svg.plot");
  const [, , width, height] = plot.getAttribute("viewBox").split(" ").map(Number);
  let zoom = 1;
  let left = 0;
  const show = (newZoom, newLeft) => {
    zoom = Math.min(64, Math.max(1, newZoom));
    left = Math.min(width - width / zoom, Math.max(0, newLeft));
    plot.setAttribute("viewBox", `${left} 0 ${width / zoom} ${height}`);
    plot.style.setProperty("--zoom", zoom);
    plot.dataset.zoom = Math.min(zoom, 16);
  };
  const zoomBy = (factor) => show(zoom * factor, left + (width / zoom / 2) * (1 - 1 / factor));
  const moveBy = (share) => show(zoom, left + (share * width) / zoom);
  const tools = document.createElement("div");
  tools.className = "tools";
  for (const [label, title, act] of [
    ["◂", "earlier", () => moveBy(-0.5)],
    ["▸", "later", () => moveBy(0.5)],
    ["−", "zoom out", () => zoomBy(0.5)],
    ["+", "zoom in", () => zoomBy(2)],
    ["all", "the whole timeline", () => show(1, 0)],
  ]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.title = title;
    button.addEventListener("click", act);
    tools.append(button);
  }
  figure.prepend(tools);
  plot.addEventListener("pointerdown", (event) => plot.setPointerCapture(event.pointerId));
  plot.addEventListener("pointermove", (event) => {
    if (!plot.hasPointerCapture(event.pointerId)) return;
    const units = (event.movementX * drawing.viewBox.baseVal.width) / drawing.getBoundingClientRect().width;
    show(zoom, left - units / zoom);
  });
}
