// The live page: figures and pictures as they come; after a broken connection it goes on by itself.
export function live() {
  const box = document.querySelector("[data-live]");
  if (!box) return;
  const state = document.querySelector(".state");
  const source = new EventSource(box.dataset.live);
  const say = (kind, words) => { state.className = `state ${kind}`; state.textContent = words; };
  source.onopen = () => say("", "running");
  source.onmessage = (event) => {
    const now = JSON.parse(event.data);
    for (const [name, markup] of Object.entries(now.parts)) {
      const place = document.getElementById(name);
      if (place && place.dataset.seen !== markup) { place.innerHTML = markup; place.dataset.seen = markup; } // made and escaped by our server
    }
    if (now.ended) { say("ended", "ended"); source.close(); } else say("", "running");
  };
  source.onerror = () => say("away", "no answer: trying again");
}
