// Returns where the focus is: its number in reach (-1 = elsewhere), what it is, and whether it can be seen.
(() => {
  const e = document.activeElement;
  if (!e || e === document.body) return { at: -1, what: "nothing", seen: true };
  const s = getComputedStyle(e);
  const b = e.getBoundingClientRect();
  const marked = e.matches(":focus-visible") && s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2;
  const inside = b.width > 0 && b.height > 0 && b.bottom > 0 && b.right > 0 && b.top < innerHeight && b.left < innerWidth;
  const radio = e.type === "radio";
  return { at: window.reach.indexOf(e), what: `<${e.tagName.toLowerCase()}${e.id ? " id=" + e.id : ""}> ${(e.innerText || e.name || "").trim().slice(0, 40)}`, seen: marked && inside, radio };
})()
