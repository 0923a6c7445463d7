// Borders of intervals, dragged or moved with the arrow keys; and values put into groups.
const SPACE = "http://www.w3.org/2000/svg";

export function borders() {
  const area = document.querySelector(".borders[data-low]"), box = document.querySelector("input[name=borders]");
  if (!area || !box) return;
  const low = Number(area.dataset.low), high = Number(area.dataset.high), whole = area.dataset.whole !== undefined;
  const chart = area.querySelector("svg.spark"), over = document.createElementNS(SPACE, "svg");
  over.setAttribute("class", "handles");
  area.append(over);
  const step = whole ? 1 : (high - low) / 200;
  const read = () => box.value.split(",").map((t) => Number(t.trim())).filter((n) => Number.isFinite(n));
  const tidy = (v) => (whole ? Math.round(v) : Number(v.toPrecision(4)));
  const span = () => {
    const inner = chart.getBoundingClientRect(), outer = area.getBoundingClientRect();
    return [inner.left - outer.left, inner.width];
  };
  const write = (values) => { box.value = [...new Set(values.map(tidy))].sort((a, b) => a - b).join(", "); };

  function draw(focus = -1) {
    const [left, wide] = span(), tall = area.clientHeight;
    over.replaceChildren(...read().map((value, at) => {
      const x = left + wide * (value - low) / Math.max(1e-9, high - low), g = document.createElementNS(SPACE, "g");
      g.setAttribute("tabindex", "0");
      g.setAttribute("role", "slider");
      for (const [n, v] of [["label", `Border ${at + 1}`], ["valuenow", value], ["valuemin", low], ["valuemax", high]])
        g.setAttribute(`aria-${n}`, v);
      const line = document.createElementNS(SPACE, "line"), knob = document.createElementNS(SPACE, "rect"), words = document.createElementNS(SPACE, "text");
      for (const [n, v] of [["x1", x], ["x2", x], ["y1", 20], ["y2", tall - 24]]) line.setAttribute(n, v);
      for (const [n, v] of [["x", x - 6], ["y", 18], ["width", 12], ["height", 22], ["rx", 4]]) knob.setAttribute(n, v);
      words.setAttribute("x", x);
      words.setAttribute("y", 13);
      words.textContent = value;
      g.append(line, knob, words);
      g.addEventListener("keydown", (e) => {
        const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 10, PageDown: -10 }[e.key];
        if (e.key === "Delete") { write(read().filter((_, i) => i !== at)); draw(); }
        if (!by) return;
        e.preventDefault();
        move(at, value + by * step);
        draw(at);
      });
      knob.addEventListener("pointerdown", (e) => {
        knob.setPointerCapture(e.pointerId);
        const values = read();
        knob.onpointermove = (m) => {
          const at_x = m.clientX - area.getBoundingClientRect().left;
          const v = tidy(Math.min(high, Math.max(low, low + (high - low) * (at_x - left) / wide)));
          values[at] = v;
          write(values);
          const nx = left + wide * (v - low) / Math.max(1e-9, high - low);
          line.setAttribute("x1", nx); line.setAttribute("x2", nx); knob.setAttribute("x", nx - 6);
          words.setAttribute("x", nx); words.textContent = v;
        };
        knob.onpointerup = () => { knob.onpointermove = null; draw(); };
      });
      return g;
    }));
    if (focus >= 0) over.children[Math.min(focus, over.children.length - 1)]?.focus();
  }
  function move(at, value) {
    const values = read();
    values[at] = Math.min(high, Math.max(low, value));
    write(values);
  }
  box.addEventListener("change", () => draw());
  addEventListener("resize", () => draw());
  draw();
}

export function grouping() {
  const button = document.getElementById("putin"), name = document.getElementById("groupname");
  if (!button) return;
  const put = () => {
    document.querySelectorAll(".values li").forEach((line) => {
      const tick = line.querySelector(".pick");
      if (tick.checked) { line.querySelector("input[name^=group-]").value = name.value.trim(); tick.checked = false; }
    });
    name.value = "";
  };
  button.addEventListener("click", put);
  name.addEventListener("keydown", (e) => { if (e.key === "Enter") { e.preventDefault(); put(); } });
}
