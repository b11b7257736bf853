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

  // local shows a moment in the zone of the viewer, in the order of the command line, or exactly.
  const local = (at, exactly) => {
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    const zone = -at.getTimezoneOffset();
    const sign = zone < 0 ? "-" : "+";
    const shift = `${sign}${two(Math.floor(Math.abs(zone) / 60))}:${two(Math.abs(zone) % 60)}`;
    const part = exactly ? `.${String(at.getMilliseconds()).padStart(3, "0")}` : "";
    return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}${part} ${shift}`;
  };

  const showTimes = () => {
    for (const t of document.querySelectorAll("time[datetime]")) {
      const at = new Date(t.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      const text = "since" in t.dataset ? `for ${length(Date.now() - at.getTime())}` : local(at, "ms" in t.dataset);
      if (t.textContent !== text) t.textContent = text;
    }
  };

  // The parts of a page that change are asked for anew while somebody sees them and has not stopped it.
  let runs = true;
  let fails = false;
  const refresh = () => {
    if (!runs || document.hidden) return;
    for (const part of document.querySelectorAll("[data-live]")) htmx.trigger(part, "refresh");
  };

  // A refresh may bring the last state of a page, which is asked for no more.
  const hideRefresh = () => {
    const idle = !document.querySelector("[data-live]");
    for (const p of document.querySelectorAll(".refresh")) if (p.hidden !== idle) p.hidden = idle;
  };

  const showButtons = () => {
    hideRefresh();
    for (const b of document.querySelectorAll("[data-refresh]")) {
      b.setAttribute("aria-pressed", String(runs));
      b.classList.toggle("bad", runs && fails);
      b.textContent = !runs ? "Refresh is off" : fails ? "No answer, tries again" : "Refreshes every 2 s";
    }
  };

  // What comes of a refresh: the page stays as it is while the node has no answer, and a session that has ended leads to
  // the login, which is no part of this page.
  const came = (failed) => {
    if (fails === failed) return;
    fails = failed;
    showButtons();
  };
  document.addEventListener("htmx:before:response", (event) => {
    const answer = event.detail.ctx.response.raw;
    came(!answer.ok);
    if (!answer.redirected) return;
    event.preventDefault();
    runs = false;
    location.assign(answer.url);
  });
  document.addEventListener("htmx:error", () => came(true));

  // A refresh brings the page as it is without scripts: what needs them is shown again before it is drawn.
  const showScripted = () => {
    for (const e of document.querySelectorAll("[data-script][hidden]")) e.hidden = false;
  };

  // copy copies the text of an element, also where a page may not use the clipboard, as without TLS.
  const copy = async (from) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(from.textContent);
    const focused = document.activeElement;
    getSelection().selectAllChildren(from);
    const done = document.execCommand("copy");
    getSelection().removeAllRanges();
    if (focused) focused.focus();
    if (!done) throw new Error("not copied");
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
      const say = (text) => {
        b.textContent = text;
        setTimeout(() => { b.textContent = "Copy"; }, every);
      };
      if (from) copy(from).then(() => say("Copied"), () => say("Not copied"));
    }
    if ("all" in b.dataset) {
      for (const box of b.form.querySelectorAll("input[type=checkbox][name=task]")) box.checked = b.dataset.all === "true";
    }
  });

  document.addEventListener("visibilitychange", refresh);
  document.addEventListener("DOMContentLoaded", () => {
    const show = () => {
      showScripted();
      showTimes();
      hideRefresh();
    };
    show();
    showButtons();
    setInterval(refresh, every);
    setInterval(showTimes, 1000);
    new MutationObserver(show).observe(document.getElementById("main"),
      { childList: true, characterData: true, attributes: true, subtree: true,
        attributeFilter: ["hidden", "datetime", "data-live"] });
  });
})();
