"use strict";
// Uses the report as a person does, and writes what is to be seen then. test_report_page.py serves and reads it.
const frame = document.getElementById("frame");
frame.addEventListener("load", () => {
  const page = frame.contentDocument;
  const all = (selector) => [...page.querySelectorAll(selector)];
  const one = (selector) => page.querySelector(selector);
  const visible = (node) => node.getClientRects().length > 0;
  const hosts = () => all("#hosts > tbody").filter(visible).map((body) => body.querySelector("th").textContent);
  const head = (column) => one(`thead button[data-column="${column}"]`);
  const chip = (state) => one(`.chip[data-state="${state}"]`);
  const look = () => ({ hosts: hosts(), said: one("#shown").textContent, address: frame.contentWindow.location.hash });
  const type = (text) => {
    one("#words").value = text;
    one("#words").dispatchEvent(new Event("input", { bubbles: true }));
  };
  const choose = (name) => {
    one("#group").value = name;
    one("#group").dispatchEvent(new Event("change", { bubbles: true }));
  };
  const click = (...nodes) => nodes.forEach((node) => node.click());
  const order = (column) => head(column).parentElement.getAttribute("aria-sort");
  const answers = {};
  try {
    answers.first = look();
    click(head("host"));
    answers.byHost = { ...look(), order: order("host") };
    click(head("host"));
    answers.byHostDown = { ...look(), order: order("host"), others: order("state") };
    click(head("kernel"));
    answers.byKernel = look();
    click(head("state"));
    answers.byState = look();
    type("  DATA0005 ");
    answers.oneHost = look();
    type("xid t4");
    answers.twoWords = look();
    type("no such host");
    answers.none = { ...look(), message: visible(one("#nothing")) };
    click(one("#again"));
    answers.again = look();
    click(chip("planned"), chip("drift"));
    answers.faults = { ...look(), pressed: chip("planned").getAttribute("aria-pressed") };
    click(one("#reset"));
    choose("edge_nodes");
    answers.edges = look();
    click(one("#reset"));
    const nodes = all("thead button, .controls button, .controls input, .controls select");
    nodes.forEach((node) => node.focus());
    answers.unfocusable = nodes.filter((node) => (node.focus(), page.activeElement !== node)).map((node) => node.outerHTML);
    answers.untold = all("#hosts > tbody").filter((body) => !/\w/.test(body.querySelector(".badge").textContent)).length;
    answers.width = [page.documentElement.scrollWidth, frame.clientWidth];
    answers.hostile = hosts().includes("data0002") && one('[data-test="hostile"]') === null && frame.contentWindow.acted === undefined;
    answers.shown = page.body.innerText.includes('<img src="x" onerror="window.acted=1">');
    frame.contentWindow.location.hash = "";
  } catch (error) {
    answers.error = String(error.stack);
  }
  document.getElementById("answers").textContent = JSON.stringify(answers);
});
