// report_page.js - runs the script of a page in a small document of its own, and looks at what it has drawn.
//
//     node report_page.js page.html [one-class|numbers|bare]
"use strict";
const assert = require("assert");
const fs = require("fs");
const vm = require("vm");

const page = fs.readFileSync(process.argv[2], "utf8");
const kind = process.argv[3] ?? "all";
const [data, script] = [...page.matchAll(/<script[^>]*>([^]*?)<\/script>/g)].map((found) => found[1]);

class Element {
  constructor(space, name) {
    Object.assign(this, {namespaceURI: space, name, attributes: {}, children: [], text: "", heard: {}, style: {}});
    Object.assign(this, {clientWidth: 700, offsetWidth: 50});
  }
  setAttribute(key, value) { this.attributes[key] = String(value); }
  getAttribute(key) { return this.attributes[key] ?? null; }
  removeAttribute(key) { delete this.attributes[key]; }
  append(child) { child.parentNode = this; this.children.push(child); }
  replaceChildren() { this.children = []; }
  addEventListener(type, call) { this.heard[type] = call; }
  getBoundingClientRect() { return {left: 0, top: 0, width: 420, height: 420}; }
  get lastChild() { return this.children[this.children.length - 1]; }
  get textContent() { return this.text + this.children.map((child) => child.textContent).join(""); }
  set textContent(text) { this.text = text; this.children = []; }
  all(name) { return this.children.flatMap((c) => [...(c.name === name ? [c] : []), ...c.all(name)]); }
}
const main = new Element("html", "main");
const world = vm.createContext({document: {
  getElementById: () => ({textContent: data}),
  querySelector: () => main,
  createElementNS: (space, name) => new Element(space, name),
}});
vm.runInContext(script, world);
const json = JSON.parse(data);
const texts = (e, name) => e.all(name).map((child) => child.textContent);
const heads = texts(main, "h2");
const titles = texts(main, "figcaption");

// No number is broken, whatever the data are.
for (const e of [...main.all("path"), ...main.all("circle"), ...main.all("rect"), ...main.all("text")])
  assert.doesNotMatch(Object.values(e.attributes).join(" ") + e.textContent, /NaN|Infinity|undefined|null/);
assert.strictEqual(main.all("div").filter((e) => e.getAttribute("class") === "tip").length, titles.length);

if (kind === "bare") {
  assert.deepStrictEqual(heads, ["Training", "Configuration"]);
  assert.match(main.textContent, /No history: run\/metrics.jsonl is not there/);
} else if (kind === "numbers") {
  assert.deepStrictEqual(heads, ["Metrics", "By values of device", "Training", "Configuration"]);
  assert.ok(titles[0].startsWith("loss") && texts(main, "th").includes("rmse"));
} else if (kind === "one-class") {
  assert.ok(!titles.some((title) => /ROC|precision/.test(title)) && titles.includes("scoresclicksall others"));
  assert.match(main.textContent, /aucn\/aarea under the ROC curve/);
} else {
  assert.deepStrictEqual(heads, ["Metrics", "Curves", "Calibration by deciles of the score", "Compared with run",
    "By values of device", "Training", "Configuration"]);
  assert.deepStrictEqual(titles.map((title) => title.replace(/[0-9.]+$/, "")), ["ROC, AUC ", "precision and recall, area ",
    "reliability, .95 intervals", "scoresclicksall others", "reliability, .95 intervalsthis modelthe other",
    "clicks over predicted clicks (COPC), largest values first", "losstrainingvalidation", "AUCtrainingvalidation",
    "learning rate", "rows per second"]);
  const figure = main.all("figure")[0];
  const curve = (i) => main.all("figure")[i].all("path").find((e) => e.getAttribute("class") === "first").getAttribute("d");
  const lowest = json.curve.points[json.curve.points.length - 1];
  assert.strictEqual(titles[0], `ROC, AUC ${json.curve.auc.toFixed(4)}`);
  assert.strictEqual(curve(0).split("L").length, json.curve.points.length);
  assert.strictEqual(curve(1).split("L").pop(), `410 ${+(360 - 352 * lowest[2]).toFixed(1)}`);
  assert.ok(main.all("rect").every((e) => e.getAttribute("height") >= 0 && e.getAttribute("y") >= 8));

  // Names are text: no element is made of them.
  const slices = main.all("table").find((e) => e.textContent.startsWith("devicerows"));
  assert.ok(texts(slices, "td").includes('<b>"tv" & </script>'));
  assert.strictEqual(main.all("script").length + main.all("b").length, 6); // of six tiles

  // A click on a name sorts, the next one the other way round.
  const column = () => slices.all("tbody")[0].children.map((row) => Number(row.children[2].textContent));
  const down = [...column()].sort((a, b) => b - a);
  slices.all("button")[2].heard.click();
  assert.deepStrictEqual(column(), down);
  slices.all("button")[2].heard.click();
  assert.deepStrictEqual(column(), down.reverse());
  assert.strictEqual(slices.all("th")[2].getAttribute("aria-sort"), "ascending");

  // The pointer finds the nearest point.
  figure.all("svg")[0].heard.pointermove({clientX: 58, clientY: 360});
  assert.match(figure.lastChild.textContent, /^false positive rate 0\.0000\nrecall 0\.0/);
}

// Numbers have as many digits as their rows tell.
for (const [rows, value, text] of [[5000, .754612, "0.7546"], [5e7, .754612, "0.75461"], [5000, .0123456, "0.0123"],
  [5000, -.00123456, "-0.00123"], [5000, 1e-9, "0.00000000"], [5000, 0, "0.0000"], [5000, 12.5, "12.5000"], [1, null, "n/a"]])
  assert.strictEqual(world.number(value, rows), text);
assert.strictEqual(world.number(.0001074, 5000, 6), "0.000107");

// Draws one figure of one line, and returns the paths and dots of that line and the numbers at the axes.
function draw(points, axes) {
  const at = new Element("html", "div");
  world.chart(at, {title: "a < b", x: {label: "", from: 0, to: 1}, y: {label: "", from: 0, to: 1}, ...axes,
    lines: [{class: "it", points, dots: true}]});
  const of = (name, key) => at.all(name).filter((e) => e.getAttribute("class") === "it").map((e) => e.getAttribute(key));
  return {d: of("path", "d"), x: of("circle", "cx"), y: of("circle", "cy"), ticks: texts(at, "text")};
}
// Corners of the data are corners of the figure, what lies outside is on its edge, what has no value is left out.
assert.deepStrictEqual(draw([{x: 0, y: 0}, {x: .5, y: .5}, {x: 1, y: 1}]).d, ["M58 360L234 184L410 8"]);
assert.deepStrictEqual(draw([{x: 7, y: -3}]), {...draw([{x: 1, y: 0}]), d: ["M410 360"]});
assert.deepStrictEqual(draw([{x: 0, y: null}, {x: 0, y: 0}, {x: .5, y: NaN}, {x: 1, y: 1}]).d, ["M58 360L410 8"]);
assert.deepStrictEqual(draw([{x: .5, y: .5, low: 0, high: 1}]).d.slice(1), ["M234 360V8"]);
// A logarithmic axis halves ratios.
const ratio = {y: {label: "", from: .25, to: 4, log: true}};
assert.deepStrictEqual(draw([{x: 0, y: 1}, {x: 0, y: 0}, {x: 0, y: 2}], ratio).y, ["184", "360", "96"]);
assert.ok(draw([], ratio).ticks.includes("0.25"));
// Ticks are round numbers.
const round = draw([], {x: {label: "", from: -3.3, to: 1.7}, y: {label: "", from: 0, to: 12345}}).ticks;
for (const tick of ["-3", "0", "1", "5K", "10K"]) assert.ok(round.includes(tick), `${tick} in ${round}`);
assert.deepStrictEqual(draw([], {x: {label: "", from: .5, to: 2.5, least: 1}}).ticks.slice(0, 2), ["1", "2"]);
