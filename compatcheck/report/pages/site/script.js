"use strict";
document.documentElement.classList.add("scripted");

document.addEventListener("DOMContentLoaded", () => {
  if (document.getElementById("filter")) listEntries();
  if (document.getElementById("map")) drawMap();
});

/* The choices of a form, kept in the address. */

function restore(form) {
  const stated = new URLSearchParams(location.hash.slice(1));
  for (const control of form.elements) {
    if (!control.name) continue;
    const value = stated.get(control.name);
    const offered = control.tagName !== "SELECT" || [...control.options].some((option) => option.value === value);
    if (value !== null && offered) control.value = value;
    else if (control.tagName === "SELECT") control.selectedIndex = 0;
    else control.value = "";
  }
}

function remember(form) {
  const stated = new URLSearchParams();
  for (const control of form.elements) {
    const usual = control.tagName === "SELECT" ? control.options[0].value : "";
    if (control.name && control.value !== usual) stated.set(control.name, control.value);
  }
  const hash = stated.toString();
  if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? "#" + hash : location.pathname.split("/").pop());
}

function folded(text) {
  return text.normalize("NFKC").toLowerCase().replace(/\s+/g, " ").trim();
}

/* The list of entries. */

function listEntries() {
  const form = document.getElementById("filter");
  const list = document.getElementById("entries");
  const impacts = [...form.elements.impact.options].map((option) => option.value);
  const held = window.compatcheckSearch || {};
  const rows = [...list.children].map((row) => {
    const [words, patterns] = held[row.dataset.id] || ["", []];
    return { row, text: folded(row.textContent + " " + words), patterns: patterns.map(readable), ...row.dataset };
  });
  const orders = {
    published: (a, b) => b.published.localeCompare(a.published) || b.id.localeCompare(a.id),
    impact: (a, b) => impacts.indexOf(a.impact) - impacts.indexOf(b.impact) || b.published.localeCompare(a.published),
    id: (a, b) => a.id.localeCompare(b.id),
  };
  let order = "published";

  function show() {
    const chosen = Object.fromEntries(new FormData(form));
    const words = folded(chosen.q).split(" ").filter(Boolean);
    const lines = chosen.q.split(/\r?\n/).map((line) => line.replace(LAUNCHED, "")).filter((line) => line.length >= 8);
    let shown = 0;
    for (const each of rows) {
      const found = words.every((word) => each.text.includes(word)) || lines.some((line) => each.patterns.some((fits) => fits(line)));
      const kept = found
        && (!chosen.package || each.packages.split("|").includes(chosen.package))
        && (!chosen.impact || each.impact === chosen.impact)
        && (!chosen.gpu || each.gpus === undefined || each.gpus.split("|").includes(chosen.gpu))
        && (!chosen.confidence || each.confidence === chosen.confidence);
      each.row.hidden = !kept;
      shown += kept;
    }
    if (chosen.sort !== order) {
      order = chosen.sort;
      list.append(...rows.sort(orders[order]).map((each) => each.row));
    }
    const all = shown === rows.length ? "" : ` of ${rows.length}`;
    document.getElementById("count").textContent = shown ? `${shown}${all} entries` : "No entry fits; nothing known is not proof of health.";
    remember(form);
  }

  const start = () => {
    const named = decodeURIComponent(location.hash.slice(1)).toUpperCase();
    if (/^CC-\d{4}-\d{4}$/.test(named)) return location.replace(`entries/${named}.html`);
    restore(form);
    show();
  };
  form.addEventListener("input", show);
  form.addEventListener("reset", () => setTimeout(show));
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", start);
  start();
}

/* What launchers put before each line of a process. */
const LAUNCHED = /^(?:\[(?:rank|default)\d+\]:\s?|\([^()]*pid=\d+[^()]*\)\s|\d+:\s)+/;

/* A test of a pasted line by an error pattern: its expression, else the text that stands in every match. */
function readable([source, flags, literal]) {
  try {
    if (source) {
      const expression = new RegExp(source, flags);
      return (line) => expression.test(line);
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return (line) => literal.length >= 8 && line.toLowerCase().includes(literal);
}

/* The version map. */

function drawMap() {
  const form = document.getElementById("choose");
  const grid = document.getElementById("grid");
  const panel = document.getElementById("cell");
  const known = JSON.parse(document.getElementById("map").textContent);
  const kinds = { "silent-wrong": "bad-wrong", divergence: "bad-wrong", slow: "bad-slow" };
  const signs = { "bad-wrong": "≠", "bad-stop": "×", "bad-slow": "~", may: "?", good: "✓", none: "" };
  const worst = ["bad-wrong", "bad-stop", "bad-slow"];
  let cells = [];
  let at = [0, 0];

  function found(beside, column, row) {
    const place = [column, ...["gpu", "setup", "model"].map((name) => form.elements[name].selectedIndex), row];
    const sizes = [...known.sizes, beside.rows.length];
    const here = { a: [], p: [], good: [], bad: [] };
    for (const told of beside.told) {
      told.marks = told.marks || told[2].replace(/(\d+)(.)/g, (_, count, mark) => mark.repeat(count));
      const mark = told.marks[told[1].reduce((index, dimension) => index * sizes[dimension] + place[dimension], 0)];
      if (mark !== ".") here[mark].push(known.entries[told[0]]);
    }
    for (const [inColumn, inRow, entry, passed, torch, other] of beside.measured) {
      if (inColumn === column && inRow === row) here[passed ? "good" : "bad"].push([...known.entries[entry], torch, other]);
    }
    return here;
  }

  function kind(here) {
    const seen = here.a.map((entry) => kinds[entry[2]] || "bad-stop");
    return worst.find((each) => seen.includes(each)) || (here.p.length ? "may" : here.good.length ? "good" : "none");
  }

  function spoken(here) {
    const parts = [[here.a, "known bad"], [here.p, "may be bad"], [here.good, "measured good"]];
    const told = parts.filter(([list]) => list.length).map(([list, words]) => `${list.length} ${words}`);
    return told.join(", ") || "nothing known";
  }

  function draw() {
    const name = form.elements.beside.value;
    const beside = known.beside[name];
    const table = element("table", "", []);
    table.setAttribute("role", "grid");
    table.setAttribute("aria-label", `torch in columns, ${name} in rows; move with the arrow keys, open with Enter`);
    const head = element("tr", "", [element("th", "corner", [`${name} \\ torch`]), ...known.torch.map(([minor, version]) => titled(element("th", "", [minor]), version, "col"))]);
    const count = { bad: 0, may: 0, good: 0, none: 0 };
    let measured = 0;
    cells = beside.rows.map(([minor, version], row) => known.torch.map(([, torch], column) => {
      const here = found(beside, column, row);
      const as = kind(here);
      count[as.startsWith("bad") ? "bad" : as] += 1;
      measured += here.good.length > 0;
      const button = element("button", as, [signs[as] + (here.good.length && as !== "good" ? signs.good : "")]);
      button.type = "button";
      button.tabIndex = -1;
      button.setAttribute("aria-label", `torch ${torch}, ${name} ${version}: ${spoken(here)}`);
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => open(row, column));
      return button;
    }));
    const body = cells.map((row, number) => element("tr", "", [
      titled(element("th", "", [beside.rows[number][0]]), beside.rows[number][1], "row"),
      ...row.map((button) => { const cell = element("td", "", [button]); cell.setAttribute("role", "gridcell"); return cell; }),
    ]));
    table.append(element("thead", "", [head]), element("tbody", "", body));
    grid.replaceChildren(table);
    at = [Math.min(at[0], cells.length - 1), at[1]];
    cells[at[0]][at[1]].tabIndex = 0;
    const proved = measured ? `; in ${measured} a probe was measured and passed` : "";
    document.getElementById("count").textContent = `torch with ${name}: ${count.bad} cells known bad, ${count.may} may be bad, ${count.good + count.none} with nothing known against them${proved}.`;
    panel.replaceChildren(element("h2", "", ["Choose a cell"]), element("p", "", ["Its findings are listed here."]));
    remember(form);
  }

  function open(row, column) {
    const name = form.elements.beside.value;
    const beside = known.beside[name];
    const here = found(beside, column, row);
    reach(row, column);
    cells.flat().forEach((button) => button.setAttribute("aria-pressed", String(button === cells[row][column])));
    const parts = [
      ["Known bad", here.a], ["May be bad: it depends on what is not stated", here.p],
      ["Measured, and the probe passed", here.good], ["Measured, and the probe failed", here.bad],
    ].filter(([, list]) => list.length);
    const back = element("button", "", ["Back to the map"]);
    back.type = "button";
    back.addEventListener("click", () => cells[row][column].focus());
    panel.replaceChildren(
      element("h2", "", [`torch ${known.torch[column][1]} with ${name} ${beside.rows[row][1]}`]),
      ...parts.flatMap(([words, list]) => [element("h3", "", [words]), element("ul", "", list.map((entry) => element("li", "", line(entry, name))))]),
      ...(parts.length ? [] : [element("p", "", ["Nothing is known of this pair. That does not mean that it is good."])]),
      back,
    );
    panel.focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
  }

  function line([id, title, impact, torch, other], name) {
    const link = element("a", "", [title]);
    link.href = `entries/${id}.html`;
    const measured = torch ? `, torch ${torch}, ${name} ${other}` : "";
    return [link, " ", element("small", "", [`${id}, ${impact}${measured}`])];
  }

  function reach(row, column) {
    cells[at[0]][at[1]].tabIndex = -1;
    at = [row, column];
    cells[row][column].tabIndex = 0;
  }

  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -999], End: [0, 999], PageUp: [-10, 0], PageDown: [10, 0] };
  grid.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (!step || event.target.tagName !== "BUTTON") return;
    event.preventDefault();
    reach(within(at[0] + step[0], cells.length), within(at[1] + step[1], cells[0].length));
    cells[at[0]][at[1]].focus();
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") cells[at[0]][at[1]].focus();
  });
  const start = () => { restore(form); draw(); };
  form.addEventListener("input", draw);
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", start);
  start();
}

function within(place, count) {
  return Math.max(0, Math.min(count - 1, place));
}

function titled(cell, words, scope) {
  cell.title = words;
  cell.scope = scope;
  return cell;
}

function element(name, kind, children) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  made.append(...children);
  return made;
}
