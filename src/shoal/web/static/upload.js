// A file goes to the server as it is, with a bar; what is wrong with it is said beside it.
export function uploads() {
  document.querySelectorAll("[data-upload]").forEach((zone) => {
    const input = zone.querySelector("input[type=file]");
    input.addEventListener("change", () => input.files[0] && send(zone, input.files[0]));
    for (const name of ["dragover", "dragenter"])
      zone.addEventListener(name, (e) => { e.preventDefault(); zone.classList.add("over"); });
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    zone.addEventListener("drop", (e) => {
      e.preventDefault();
      zone.classList.remove("over");
      if (e.dataTransfer.files[0]) send(zone, e.dataTransfer.files[0]);
    });
  });
}

function send(zone, file) {
  const bar = zone.querySelector("progress"), wrong = zone.querySelector(".wrong");
  const place = new URL(zone.dataset.upload, location.href);
  place.searchParams.set("name", file.name);
  document.querySelectorAll("input[name=on]:checked").forEach((e) => place.searchParams.append("on", e.value));
  wrong.textContent = "";
  bar.hidden = false;
  const request = new XMLHttpRequest();
  request.open("PUT", place);
  request.upload.onprogress = (e) => { if (e.lengthComputable) bar.value = e.loaded / e.total; };
  request.onerror = () => { bar.hidden = true; wrong.textContent = "The copy broke off: is shoal still running?"; };
  request.onload = () => {
    bar.hidden = true;
    let told = {};
    try { told = JSON.parse(request.responseText); } catch { told = { message: "the server did not understand it" }; }
    if (told.go) location.assign(told.go);
    else wrong.textContent = `${told.where ? told.where + ": " : ""}${told.message}${told.hint ? "\n" + told.hint : ""}`;
  };
  request.send(file);
}
