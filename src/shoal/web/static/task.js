// Running work: its bar, its word, the loss as it falls; when it has ended, the page is loaded again.
export function tasks() {
  document.querySelectorAll("[data-task]").forEach((box) => {
    const source = new EventSource(box.dataset.task);
    source.onmessage = (event) => {
      const now = JSON.parse(event.data);
      box.querySelector("progress").value = now.share;
      box.querySelector(".word").textContent = now.word;
      box.querySelector(".seconds").textContent = `${now.seconds.toFixed(1)} s`;
      falling(box.querySelector(".falling"), now.losses);
      lost(false);
      if (now.state !== "running") { source.close(); again(); }
    };
    source.onerror = () => { if (source.readyState !== EventSource.OPEN) lost(true); };
    addEventListener("pagehide", () => source.close());
  });
}

// A server that is stopped ends its work first: without a question the browser would show an error page of its own.
function again() {
  fetch(location.href, { method: "HEAD" }).then(() => location.reload(), () => lost(true));
}

export function lost(yes) {
  const banner = document.getElementById("lost");
  banner.hidden = !yes;
  banner.textContent = yes ? "Shoal does not answer. If it was stopped, what was uploaded is wiped: start it again in the terminal." : "";
}

function falling(picture, losses) {
  if (!picture || losses.length < 2) return;
  picture.hidden = false;
  picture.removeAttribute("hidden");
  const last = losses[losses.length - 1], first = losses[0];
  const low = Math.min(...losses.map((l) => l[1])), high = Math.max(...losses.map((l) => l[1]));
  const x = (t) => 8 + 584 * (t - first[0]) / Math.max(0.01, last[0] - first[0]);
  const y = (v) => 100 - 78 * (v - low) / Math.max(1e-9, high - low);
  const space = "http://www.w3.org/2000/svg";
  const line = document.createElementNS(space, "polyline");
  line.setAttribute("points", losses.map((l) => `${x(l[0]).toFixed(1)},${y(l[1]).toFixed(1)}`).join(" "));
  const words = document.createElementNS(space, "text");
  words.setAttribute("x", 8);
  words.setAttribute("y", 14);
  words.textContent = `Detail lost: ${last[1].toFixed(2)} %, falling from ${first[1].toFixed(2)} %`;
  picture.replaceChildren(line, words);
}
