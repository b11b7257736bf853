// Lists what is wrong with how the page is laid out: what is wider than the window, text that is cut off, and controls or texts
// that lie over each other. It changes nothing.
(() => {
  const problems = [];
  const name = (e) => {
    const label = (e.innerText || e.value || e.getAttribute("aria-label") || "").trim().replace(/\s+/g, " ").slice(0, 40);
    return `<${e.tagName.toLowerCase()}${e.id ? " id=" + e.id : ""}${e.getAttribute("class") ? " class=" + e.getAttribute("class") : ""}> ${label}`;
  };
  const say = (what, e) => { if (problems.length < 20) problems.push(`${what}: ${name(e)}`); };
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) say(`the page is ${root.scrollWidth} pixels wide in ${root.clientWidth}`, root);

  // What is moved out of the window on purpose, for screen readers, is not looked at; nor what a closed <details> holds.
  const away = (e) => e.closest(".skip:not(:focus), .off, thead") && getComputedStyle(e.closest(".skip, .off, thead")).position === "absolute";
  const seen = (e) => e.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true, opacityProperty: true }) && !away(e);

  // Where an element, or one around it, cuts off what is too large: [its box without borders, whether it can be scrolled].
  const cuts = (e) => {
    const all = [];
    for (let p = e; p && p !== root; p = p.parentElement) {
      const s = getComputedStyle(p);
      const over = [s.overflowX, s.overflowY];
      if (over.every((o) => o === "visible")) continue;
      const b = p.getBoundingClientRect();
      const box = { left: b.left + p.clientLeft, top: b.top + p.clientTop };
      box.right = box.left + p.clientWidth, box.bottom = box.top + p.clientHeight;
      all.push({ box, x: over[0], y: over[1], of: p });
      if (over.some((o) => o === "auto" || o === "scroll")) break; // what is further out sees the box of this one alone
    }
    return all;
  };
  const slack = 1.5;

  const texts = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const e = n.parentElement;
    if (!n.data.trim() || e.closest("script, style, noscript, title, option") || !seen(e)) continue;
    const edges = cuts(e);
    const scrolled = edges.length > 0 && /auto|scroll/.test(edges.at(-1).x + edges.at(-1).y);
    if (scrolled && edges.length === 1) continue; // whatever its size, it can be scrolled to
    const range = document.createRange();
    range.selectNodeContents(n);
    const boxes = [...range.getClientRects()].filter((r) => r.width > 0.5 && r.height > 0.5).slice(0, 200);
    for (const r of boxes) {
      for (const { box, x, y, of } of edges) {
        if (/hidden|clip/.test(x) && (r.left < box.left - slack || r.right > box.right + slack)) { say("text is cut off at the side", of); break; }
        if (/hidden|clip/.test(y) && (r.top < box.top - slack || r.bottom > box.bottom + slack)) { say("text is cut off above or below", of); break; }
      }
      if (!scrolled && (r.left < -slack || r.right > root.clientWidth + slack)) { say("text leaves the window", e); break; }
      const svg = e.closest("svg");
      if (svg) {
        const b = svg.getBoundingClientRect();
        if (r.left < b.left - slack || r.right > b.right + slack || r.top < b.top - slack || r.bottom > b.bottom + slack) say("text leaves its drawing", e);
      }
    }
    if (scrolled) continue; // what is scrolled away lies over nothing
    for (const r of boxes) texts.push({ r, e });
  }

  // A cell's text stays in its cell.
  for (const e of document.querySelectorAll("td, th, dd, dt, .card, button, .button, summary, li")) {
    if (!seen(e)) continue;
    if (e.scrollWidth > e.clientWidth + slack && e.clientWidth > 0 && getComputedStyle(e).display !== "inline") say("what it holds is wider than it", e);
  }
  for (const e of document.querySelectorAll("select")) {
    if (!seen(e)) continue;
    const c = document.createElement("canvas").getContext("2d");
    c.font = getComputedStyle(e).font;
    const text = e.selectedOptions[0] ? e.selectedOptions[0].text : "";
    if (text.length < 30 && c.measureText(text).width > e.clientWidth - 20) say("the choice is cut off", e);
  }

  const over = (a, b) => Math.min(Math.min(a.right, b.right) - Math.max(a.left, b.left), Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));
  const sweep = (all, most, what) => {
    all.sort((a, b) => a.r.top - b.r.top);
    for (let i = 0; i < all.length; i++) {
      for (let j = i + 1; j < all.length && all[j].r.top < all[i].r.bottom - most; j++) {
        const [a, b] = [all[i].e, all[j].e];
        if (a === b || a.contains(b) && what !== "text" || b.contains(a) && what !== "text") continue;
        if (over(all[i].r, all[j].r) > most) say(`${what} lies over ${name(b)}`, a);
      }
    }
  };
  const controls = [];
  for (const e of document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")) {
    if (!seen(e)) continue;
    const edges = cuts(e.parentElement);
    if (edges.length > 0 && /auto|scroll/.test(edges.at(-1).x + edges.at(-1).y)) continue;
    const rects = [...e.getClientRects()].filter((r) => r.width > 0 && r.height > 0);
    if (rects.length === 0) continue;
    for (const r of rects) {
      controls.push({ r, e });
      if (r.left < -slack || r.right > root.clientWidth + slack) say("the control leaves the window", e);
    }
    if (e.type !== "checkbox" && e.type !== "radio" && /BUTTON|INPUT|SELECT/.test(e.tagName) && rects[0].height < 24) say("the control is less than 24 pixels high", e);
  }
  sweep(controls, 1, "a control");
  sweep(texts, 3, "text");
  return problems;
})()
