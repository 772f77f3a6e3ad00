"use strict";
(() => {
  const MOST = 5000;
  const one = (selector) => document.querySelector(selector);
  const steps = [...document.querySelectorAll(".step")];
  const entries = new Map([...document.querySelectorAll("nav li a")].map((link) => [link.hash.slice(1), link]));
  const field = one("#find"), found = one("#found"), bar = one(".bar"), list = one("nav");
  const onlyErrors = one("#only-errors"), looks = [...document.querySelectorAll("input[name=look]")];
  let here = null, hits = [], at = -1, search = 0;

  const root = document.documentElement, kinds = [...document.querySelectorAll("input[id^=show-]")];

  function choose() {
    for (const look of looks) if (look.id) root.classList.toggle(look.id, look.checked);
    for (const kind of kinds) root.classList.toggle(kind.id.replace("show", "no"), !kind.checked);
    root.classList.toggle("only-errors", Boolean(onlyErrors?.checked));
  }

  const boxOf = (step) => document.getElementById(`show-${step.dataset.kind}`);
  const isBad = (step) => step.classList.contains("bad");
  const isShown = (step) => boxOf(step).checked && (isBad(step) || !onlyErrors?.checked);
  const measure = () => root.style.setProperty("--bar", `${bar.offsetHeight}px`);

  function mark(step) {
    if (step === here) return;
    const entry = step && entries.get(step.id);  // places are read before anything is changed: one layout, not two
    const top = entry ? entry.getBoundingClientRect().top - list.getBoundingClientRect().top : 0;
    const out = top < 0 || top > list.clientHeight - 40 ? top - list.clientHeight / 2 : 0;
    if (here) {
      here.classList.remove("here");
      entries.get(here.id)?.removeAttribute("aria-current");
    }
    here = step;
    here?.classList.add("here");
    entry?.setAttribute("aria-current", "true");
    if (out) list.scrollTop += out;
  }

  let naming = 0;
  function nameAddress(step) {
    clearTimeout(naming);
    naming = setTimeout(() => {
      try {
        history.replaceState(null, "", `#${step.id}`);
      } catch {
        // a page in a sandboxed frame has no history
      }
    }, 150);
  }

  function reveal(element) {
    for (let box = element.closest("details"); box; box = box.parentElement.closest("details")) {
      if (!box.open) box.open = true;
    }
    const step = element.closest(".step");
    if (!step || isShown(step)) return;
    if (!isBad(step) && onlyErrors) onlyErrors.checked = false;
    boxOf(step).checked = true;
    choose();
  }

  function go(step) {
    if (!step) return;
    reveal(step);
    step.scrollIntoView();
    mark(step);
    nameAddress(step);
  }

  function current() {
    const line = bar.getBoundingClientRect().bottom + 24;
    if (here && isShown(here)) {
      const { top } = here.getBoundingClientRect();
      if (top >= 0 && top < innerHeight * 0.75) return here;
    }
    const shown = steps.filter(isShown);
    let low = -1, high = shown.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (shown[middle].getBoundingClientRect().top <= line) low = middle;
      else high = middle - 1;
    }
    return shown[low] ?? null;
  }

  function walk(by, wanted) {
    const place = steps.indexOf(current());
    for (let at = place + by; at >= 0 && at < steps.length; at += by) {
      if (isShown(steps[at]) && (!wanted || wanted(steps[at]))) return go(steps[at]);
    }
    one(by > 0 ? ".pages a[rel=next]" : ".pages a[rel=prev]")?.click();  // a long run has several pages
  }

  function rangeOf({ block, start, end }) {
    const range = new Range(), walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
    let passed = 0, begun = false;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const after = passed + node.length;
      if (!begun && start < after) {
        range.setStart(node, start - passed);
        begun = true;
      }
      if (begun && end <= after) {
        range.setEnd(node, end - passed);
        break;
      }
      passed = after;
    }
    return range;
  }

  const highlights = typeof Highlight === "function" && CSS.highlights;
  const painted = highlights && { hits: new Highlight(), hit: new Highlight() };
  if (painted) {
    CSS.highlights.set("hits", painted.hits);
    CSS.highlights.set("hit", painted.hit);
    painted.hit.priority = 1;
  }

  function say() {
    const more = hits.length >= MOST ? "+" : "";
    found.textContent = !field.value ? "" : hits.length ? `${at + 1} of ${hits.length}${more}` : "nothing found";
  }

  async function find() {
    const mine = ++search, text = field.value;
    hits = [];
    at = -1;
    painted?.hits.clear();
    painted?.hit.clear();
    say();
    if (!text) return;
    const pattern = new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "giu");
    let until = performance.now() + 20;
    found.textContent = "searching …";
    for (const block of document.querySelectorAll("main pre, .step > summary .what, .run dd")) {
      for (const match of block.textContent.matchAll(pattern)) {
        if (hits.length >= MOST) break;
        const hit = { block, start: match.index, end: match.index + match[0].length };
        hits.push(hit);
        if (painted) painted.hits.add(new StaticRange(rangeOf(hit)));
      }
      if (hits.length >= MOST) break;
      if (performance.now() > until) {
        await new Promise((resume) => setTimeout(resume));
        if (mine !== search) return;
        until = performance.now() + 20;
      }
    }
    if (hits.length) walkHits(1);
    else say();
  }

  function walkHits(by) {
    if (!hits.length) return;
    at = (at + by + hits.length) % hits.length;
    say();
    const hit = hits[at], step = hit.block.closest(".step");
    reveal(hit.block);
    (step ?? hit.block).scrollIntoView();
    const range = rangeOf(hit);
    if (painted) {
      painted.hit.clear();
      painted.hit.add(range);
    }
    mark(step);
    requestAnimationFrame(() => scrollBy(0, range.getBoundingClientRect().top - innerHeight / 2));
  }

  function unfold(boxes) {
    const all = [...boxes], open = all.some((box) => !box.open);
    for (const box of all) box.open = open;
  }

  const texts = [...document.querySelectorAll(".more")], ofTexts = one("#unfold"), ofSteps = one("#fold");
  const areOpen = () => steps.some((step) => step.open);

  function foldSteps() {
    const open = !areOpen();
    for (const step of steps) step.open = open;
  }

  function sayFolds() {  // what a click will do
    ofTexts.textContent = texts.length && texts.every((box) => box.open) ? "collapse texts" : "expand texts";
    ofTexts.disabled = !texts.length;
    ofSteps.textContent = areOpen() ? "collapse steps" : "expand steps";
  }

  const keys = {
    j: () => walk(1), ArrowRight: () => walk(1), k: () => walk(-1), ArrowLeft: () => walk(-1),
    x: () => walk(1, isBad), X: () => walk(-1, isBad),
    n: () => walkHits(1), N: () => walkHits(-1),
    "/": () => field.select(),
    o: () => unfold(current()?.querySelectorAll(".more") ?? []),
    O: () => unfold(texts),
    "?": () => (one(".keys").open = !one(".keys").open),
    Escape: () => (one(".keys").open = false),
  };

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target === field) {
      if (event.key === "Enter") walkHits(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") {
        field.value = "";
        find();
        field.blur();
      } else return;
    } else if (event.target.matches?.("input[type=radio]") && event.key.startsWith("Arrow")) return;
    else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  });

  let pause = 0;
  field.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(find, 150);
  });
  document.addEventListener("click", (event) => {
    const pressed = event.target.closest("button");
    if (pressed?.id === "next") walkHits(1);
    else if (pressed?.id === "before") walkHits(-1);
    else if (pressed === ofTexts) unfold(texts);
    else if (pressed === ofSteps) foldSteps();
    const link = event.target.closest("a[href^='#step-']");
    if (link) {
      event.preventDefault();
      go(document.getElementById(link.hash.slice(1)));
    }
  });
  const arrive = () => {
    const step = /^#step-\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
    if (step) requestAnimationFrame(() => go(step));
  };
  let drawn = 0;
  addEventListener("scroll", () => {
    cancelAnimationFrame(drawn);
    drawn = requestAnimationFrame(() => mark(current()));
  }, { passive: true });
  const LOOK = "gistpoint.look";
  try {
    const kept = localStorage.getItem(LOOK);
    for (const look of looks) if (kept !== null && look.id === kept) look.checked = true;
  } catch {
    // a page without an origin may keep nothing
  }
  addEventListener("change", ({ target }) => {
    if (looks.includes(target)) {
      try {
        localStorage.setItem(LOOK, target.id);
      } catch {
        // as above
      }
    }
    choose();
  });
  let labelled = 0;
  document.addEventListener("toggle", () => {
    cancelAnimationFrame(labelled);
    labelled = requestAnimationFrame(sayFolds);
  }, true);
  sayFolds();
  root.classList.add("js");
  choose();
  addEventListener("resize", measure);
  addEventListener("hashchange", arrive);
  measure();
  arrive();
})();
