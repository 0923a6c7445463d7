// Starts what a page has: uploads, running work, borders to drag, groups of values. Without it every form still works.
import { uploads } from "./upload.js";
import { tasks } from "./task.js";
import { borders, grouping } from "./borders.js";
import { live } from "./live.js";

document.querySelectorAll(".nojs").forEach((e) => e.remove());
// A choice made before this script was there counts, too: on a slow machine a page can be used before it is loaded.
function chosen(selector, act) {
  document.querySelectorAll(selector).forEach((e) => {
    e.addEventListener("change", () => act(e));
    if (e.querySelector("option[selected]") && !e.selectedOptions[0]?.defaultSelected) act(e);
  });
}
chosen("select[data-submits]", (e) => e.form.requestSubmit());
chosen("select[data-asks]", (e) => { location.search = "?use=" + encodeURIComponent(e.value); });
document.querySelectorAll('figure a[href^="#take-"]').forEach((e) =>
  e.addEventListener("click", (event) => {
    const button = document.getElementById(e.getAttribute("href").slice(1));
    if (button) { event.preventDefault(); button.form.requestSubmit(); }
  }));
document.querySelectorAll("input[type=range][data-shows]").forEach((e) => {
  const out = document.getElementById(e.dataset.shows);
  e.addEventListener("input", () => { out.textContent = e.value; });
  e.addEventListener("change", () => e.form.requestSubmit());
});
document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (button) setTimeout(() => { button.disabled = true; }, 0); // one click, one run
});
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); }); // a page kept by the browser is old
uploads();
tasks();
borders();
grouping();
live();
