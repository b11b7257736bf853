// Returns what the keyboard has to reach, numbered in the order of the page, for keyboard.go.
(() => {
  window.reach = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
    .filter((e) => !e.disabled && e.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }));
  return window.reach.length;
})()
