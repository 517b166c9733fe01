"use strict";
// Sorts and filters the table of hosts. The view is in the address after #, so that it can be kept and shared.
(() => {
  const table = document.getElementById("hosts");
  const heads = [...table.tHead.rows[0].cells];
  const hosts = [...table.tBodies].map((body, place) => ({
    body,
    place,
    state: body.dataset.state,
    groups: body.dataset.groups.split(" "),
    text: body.textContent.toLowerCase(),
    keys: [...body.rows[0].cells].map((cell) => cell.dataset.key ?? cell.textContent.trim()),
  }));
  const chips = [...document.querySelectorAll(".chip")];
  const words = document.getElementById("words");
  const group = document.getElementById("group");
  const collator = new Intl.Collator("en", { numeric: true });
  let sorted = null; // {column, down}

  const on = (chip) => chip.getAttribute("aria-pressed") === "true";

  function filter() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const states = new Set(chips.filter(on).map((chip) => chip.dataset.state));
    let count = 0;
    for (const host of hosts) {
      const fits = states.has(host.state) && (!group.value || host.groups.includes(group.value)) && wanted.every((word) => host.text.includes(word));
      host.body.hidden = !fits;
      count += fits;
    }
    document.getElementById("shown").textContent = `${count} of ${hosts.length} shown`;
    document.getElementById("nothing").hidden = count > 0;
    remember();
  }

  function sort(column, down) {
    sorted = { column, down };
    const place = heads.findIndex((head) => head.firstElementChild.dataset.column === column);
    const empty = (key) => key === "" || key === "-";
    hosts.sort((a, b) => {
      const [x, y] = [a.keys[place], b.keys[place]];
      if (empty(x) !== empty(y)) return empty(x) ? 1 : -1; // what no answer is last in both orders
      return (down ? -1 : 1) * collator.compare(x, y) || a.place - b.place;
    });
    table.append(...hosts.map((host) => host.body));
    heads.forEach((head, at) => head.setAttribute("aria-sort", at === place ? (down ? "descending" : "ascending") : "none"));
    remember();
  }

  function remember() {
    const view = new URLSearchParams();
    if (words.value) view.set("filter", words.value);
    if (group.value) view.set("group", group.value);
    if (!chips.every(on)) view.set("states", chips.filter(on).map((chip) => chip.dataset.state).join(" "));
    if (sorted) view.set("sort", (sorted.down ? "-" : "") + sorted.column);
    history.replaceState(null, "", view.size ? `#${view}` : location.pathname + location.search);
  }

  function recall() {
    const view = new URLSearchParams(location.hash.slice(1));
    const order = view.get("sort") ?? "";
    words.value = view.get("filter") ?? "";
    group.value = view.get("group") ?? "";
    if (group.selectedIndex < 0) group.value = "";
    const states = view.has("states") ? view.get("states").split(" ") : null;
    for (const chip of chips) chip.setAttribute("aria-pressed", String(!states || states.includes(chip.dataset.state)));
    const column = order.replace(/^-/, "");
    if (heads.some((head) => head.firstElementChild.dataset.column === column)) sort(column, order.startsWith("-"));
    filter();
  }

  function reset() {
    words.value = group.value = "";
    for (const chip of chips) chip.setAttribute("aria-pressed", "true");
    filter();
  }

  for (const head of heads) {
    const { column } = head.firstElementChild.dataset;
    head.firstElementChild.addEventListener("click", () => sort(column, sorted?.column === column && !sorted.down));
  }
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", String(!on(chip)));
      filter();
    });
  }
  words.addEventListener("input", filter);
  group.addEventListener("change", filter);
  document.getElementById("reset").addEventListener("click", reset);
  document.getElementById("again").addEventListener("click", reset);
  document.querySelector(".controls").hidden = false;
  recall();
})();
