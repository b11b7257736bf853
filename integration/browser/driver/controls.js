// Returns how many controls the keyboard has to reach, numbered in the order of the page, for keyboard.go. From then on each press of
// the tab key adds to stops where the focus is: its number in reach (-1 = elsewhere), what it is, and whether it can be seen.
(() => {
  window.reach = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
    .filter((e) => !e.disabled && e.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }));
  window.stops = [];
  const stop = () => {
    const e = document.activeElement;
    if (!e || e === document.body) return { at: -1, what: "nothing", seen: true };
    const s = getComputedStyle(e);
    const b = e.getBoundingClientRect();
    const marked = e.matches(":focus-visible") && s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2;
    const inside = b.width > 0 && b.height > 0 && b.bottom > 0 && b.right > 0 && b.top < innerHeight && b.left < innerWidth;
    return { at: window.reach.indexOf(e), what: `<${e.tagName.toLowerCase()}${e.id ? " id=" + e.id : ""}> ${(e.innerText || e.name || "").trim().slice(0, 40)}`, seen: marked && inside };
  };
  addEventListener("keyup", (event) => { if (event.key === "Tab") window.stops.push(stop()); }, true); // the browser has scrolled by then
  return window.reach.length;
})()
