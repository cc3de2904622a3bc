"use strict";
(() => {
  const read = (element) => JSON.parse(element.textContent);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Charts: Vega-Lite specifications whose colours are names of the page's own (page-a, page-ink, ...).
  const themed = (value) => {
    if (typeof value === "string") return value.startsWith("page-") ? colour(value.replace("page", "-")) : value;
    if (Array.isArray(value)) return value.map(themed);
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, key === "values" ? item : themed(item)]));
    }
    return value;
  };
  const drawCharts = () => {
    for (const holder of document.querySelectorAll(".chart")) {
      if (holder.closest("details:not([open])")) continue; // without a width; drawn when it opens
      const spec = themed(read(holder.nextElementSibling));
      const many = (spec.data?.values?.length ?? 0) > 1500;
      spec.config = themed({
        background: "page-ground", font: "system-ui, sans-serif", view: { stroke: "page-line" },
        axisQuantitative: { tickCount: 5 }, axisY: { titleLimit: 200, labelLimit: Math.min(300, 0.4 * holder.clientWidth) }, axis: { labelColor: "page-ink", titleColor: "page-ink", gridColor: "page-line", domainColor: "page-quiet", tickColor: "page-quiet", labelFontSize: 12, titleFontSize: 12, labelFlush: false, labelSeparation: 8 },
        legend: { labelColor: "page-ink", titleColor: "page-ink", labelFontSize: 12 }, title: { color: "page-ink" },
      });
      window.vegaEmbed(holder, spec, { actions: false, ast: true, renderer: many ? "canvas" : "svg", tooltip: { theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light" } })
        .then(() => {
          const picture = holder.querySelector("svg, canvas");
          if (picture) { picture.setAttribute("role", "img"); picture.setAttribute("aria-label", holder.dataset.label); }
          holder.dataset.drawn = "yes";
        });
    }
  };

  // Tables: sorted by their column buttons, searched, shown 25 rows at a time.
  const SHOWN = 25;
  const format = (value, whole) => value === null ? "" : typeof value === "number" && !whole ? value.toFixed(4) : String(value);
  const makeTable = (holder) => {
    const { columns, rows, label, pick } = read(holder.querySelector("script"));
    const state = { column: -1, descending: false, text: "", page: 0 };
    const controls = document.createElement("div");
    controls.className = "controls";
    const search = document.createElement("input");
    search.type = "search";
    const searchLabel = document.createElement("label");
    searchLabel.textContent = "Search " + label;
    searchLabel.append(search);
    const back = document.createElement("button"), forward = document.createElement("button"), count = document.createElement("span");
    back.textContent = "Previous"; forward.textContent = "Next"; count.className = "quiet"; count.setAttribute("role", "status");
    back.type = forward.type = "button";
    controls.append(searchLabel, back, forward, count);
    const scroll = document.createElement("div");
    scroll.className = "scroll"; scroll.tabIndex = 0; scroll.setAttribute("role", "region"); scroll.setAttribute("aria-label", label);
    const table = document.createElement("table"), head = table.createTHead().insertRow(), body = table.createTBody();
    const numeric = columns.map((_, k) => rows.every((row) => row[k] === null || typeof row[k] === "number"));
    const whole = columns.map((_, k) => rows.every((row) => row[k] === null || Number.isInteger(row[k])));
    columns.forEach((name, k) => {
      const cell = document.createElement("th"), button = document.createElement("button");
      cell.scope = "col"; cell.className = numeric[k] ? "number" : ""; button.type = "button"; button.textContent = name;
      button.addEventListener("click", () => {
        state.descending = state.column === k ? !state.descending : numeric[k];
        state.column = k; state.page = 0; show();
      });
      cell.append(button); head.append(cell);
    });
    const show = () => {
      const wanted = state.text.toLowerCase();
      let chosen = wanted ? rows.filter((row) => row.some((cell) => typeof cell === "string" && cell.toLowerCase().includes(wanted))) : rows.slice();
      if (state.column >= 0) {
        const k = state.column, sign = state.descending ? -1 : 1;
        chosen.sort((x, y) => x[k] === y[k] ? 0 : x[k] === null ? 1 : y[k] === null ? -1 : sign * (x[k] < y[k] ? -1 : 1));
      }
      const first = state.page * SHOWN, part = chosen.slice(first, first + SHOWN);
      [...head.cells].forEach((cell, k) => cell.setAttribute("aria-sort", k !== state.column ? "none" : state.descending ? "descending" : "ascending"));
      body.replaceChildren(...part.map((row) => {
        const line = document.createElement("tr");
        row.forEach((value, k) => {
          const cell = line.insertCell();
          cell.className = numeric[k] ? "number" : "";
          if (k === 0 && pick && document.querySelector(`#${pick} option[value="${CSS.escape(String(value))}"]`)) {
            const link = document.createElement("a");
            link.href = "#rankings"; link.textContent = value;
            link.addEventListener("click", () => { document.getElementById("rankings").closest("details").open = true; const box = document.getElementById(pick); box.value = value; box.dispatchEvent(new Event("change")); });
            cell.append(link);
          } else cell.textContent = format(value, whole[k]);
        });
        return line;
      }));
      back.disabled = state.page === 0; forward.disabled = first + SHOWN >= chosen.length;
      count.textContent = chosen.length ? `${first + 1} to ${Math.min(first + SHOWN, chosen.length)} of ${chosen.length}` : "nothing found";
    };
    search.addEventListener("input", () => { state.text = search.value; state.page = 0; show(); });
    back.addEventListener("click", () => { state.page -= 1; show(); });
    forward.addEventListener("click", () => { state.page += 1; show(); });
    scroll.append(table); holder.append(controls, scroll); show();
  };

  // Rankings of a query side by side.
  const makeRankings = (holder) => {
    const { systems, queries, relevant } = read(holder.querySelector("script"));
    const box = holder.querySelector("select"), sides = holder.querySelector(".sides");
    const add = (parent, name, text, kind) => {
      const element = document.createElement(name);
      if (text !== undefined) element.textContent = text;
      if (kind) element.className = kind;
      parent.append(element);
      return element;
    };
    const show = () => {
      const chosen = queries[box.value];
      sides.replaceChildren();
      systems.forEach((system, s) => {
        const side = add(sides, "section");
        add(side, "h3", `${system}, query ${box.value}`);
        const scroll = add(side, "div", undefined, "scroll");
        scroll.tabIndex = 0; scroll.setAttribute("role", "region"); scroll.setAttribute("aria-label", `ranking of ${system}`);
        const table = add(scroll, "table"), head = table.createTHead().insertRow(), body = table.createTBody();
        const some = chosen[s].some((document_) => document_.why);
        for (const name of ["rank", "document", "grade", "score", ...(some ? ["main contributions"] : [])]) {
          const cell = add(head, "th", name); cell.scope = "col";
        }
        chosen[s].forEach((document_, k) => {
          const line = body.insertRow();
          add(line, "td", String(k + 1), "number");
          add(line, "td", document_.id);
          const grade = add(line, "td");
          add(grade, "span", document_.grade === null ? "?" : format(document_.grade, Number.isInteger(document_.grade)), "grade" + (document_.grade >= relevant ? " relevant" : ""));
          add(line, "td", format(document_.score), "number");
          if (some) {
            const why = add(line, "td", undefined, "why");
            for (const [name, amount] of document_.why ?? []) {
              add(why, "span", `${amount >= 0 ? "+" : "−"}${Math.abs(amount).toPrecision(3)} ${name}`, amount >= 0 ? "plus" : "minus");
              why.append(" ");
            }
          }
        });
      });
    };
    box.addEventListener("change", show);
    show();
  };

  for (const holder of document.querySelectorAll(".data-table")) makeTable(holder);
  for (const holder of document.querySelectorAll(".rankings")) makeRankings(holder);
  const open = (part) => { if (part) part.open = true; };
  const openTarget = () => open(document.getElementById(location.hash.slice(1))?.closest("details"));
  for (const part of document.querySelectorAll("details")) {
    part.addEventListener("toggle", () => { if (part.open && !part.dataset.drawn) { part.dataset.drawn = "yes"; drawCharts(); } });
  }
  document.querySelector("nav").addEventListener("click", (event) => open(document.querySelector(event.target.hash || null)?.closest("details")));
  addEventListener("hashchange", openTarget);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(open));
  openTarget();
  drawCharts();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCharts);
  document.documentElement.dataset.ready = "yes";
})();
