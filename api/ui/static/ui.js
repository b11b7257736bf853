// What pages do with JavaScript. They work without it: nothing here is needed to see or to do anything.
"use strict";

(() => {
  const every = 2000;

  const length = (ms) => {
    const s = Math.max(0, Math.floor(ms / 1000));
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
    if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
    return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
  };

  const two = (n) => String(n).padStart(2, "0");

  // local shows a moment in the zone of the viewer, in the order of the command line.
  const local = (at) => {
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    const zone = -at.getTimezoneOffset();
    const sign = zone < 0 ? "-" : "+";
    const shift = `${sign}${two(Math.floor(Math.abs(zone) / 60))}:${two(Math.abs(zone) % 60)}`;
    return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())} ${shift}`;
  };

  const showTimes = () => {
    for (const t of document.querySelectorAll("time[datetime]")) {
      const at = new Date(t.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      const text = "since" in t.dataset ? `for ${length(Date.now() - at.getTime())}` : local(at);
      if (t.textContent !== text) t.textContent = text;
    }
  };

  // The parts of a page that change are asked for anew while somebody sees them and has not stopped it.
  let runs = true;
  const refresh = () => {
    if (!runs || document.hidden) return;
    for (const part of document.querySelectorAll("[data-live]")) htmx.trigger(part, "refresh");
  };

  const showButtons = () => {
    for (const p of document.querySelectorAll(".refresh")) p.hidden = !document.querySelector("[data-live]");
    for (const b of document.querySelectorAll("[data-refresh]")) {
      b.setAttribute("aria-pressed", String(runs));
      b.textContent = runs ? "Refreshes every 2 s" : "Refresh is off";
    }
  };

  document.addEventListener("click", (event) => {
    const b = event.target.closest("button");
    if (!b) return;
    if ("refresh" in b.dataset) {
      runs = !runs;
      showButtons();
      refresh();
    }
    if ("copy" in b.dataset) {
      const from = document.getElementById(b.dataset.copy);
      if (from && navigator.clipboard) {
        navigator.clipboard.writeText(from.textContent).then(() => { b.textContent = "Copied"; }, () => {});
      }
    }
    if ("all" in b.dataset) {
      for (const box of b.form.querySelectorAll("input[type=checkbox][name=id]")) box.checked = b.dataset.all === "true";
    }
  });

  document.addEventListener("visibilitychange", refresh);
  document.addEventListener("DOMContentLoaded", () => {
    for (const hidden of document.querySelectorAll("[data-script]")) hidden.hidden = false;
    showTimes();
    showButtons();
    setInterval(refresh, every);
    setInterval(showTimes, 1000);
    new MutationObserver(showTimes).observe(document.getElementById("main"), { childList: true, subtree: true });
  });
})();
