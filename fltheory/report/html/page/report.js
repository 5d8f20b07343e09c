"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Sorting: a heading's text becomes a button; empty values stay last either way.
  const announce = document.createElement("p");
  announce.className = "hidden";
  announce.setAttribute("role", "status");
  document.body.append(announce);

  const compare = (a, b, kind) =>
    kind === "number" ? Number(a) - Number(b) : a.localeCompare(b, "en", { numeric: true });

  const sort = (table, heading, column) => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    const value = (row) => row.cells[column].dataset.value;
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const known = rows.filter((row) => value(row) !== "");
    known.sort((a, b) => compare(value(a), value(b), heading.dataset.sort));
    if (down) known.reverse();
    body.append(...known, ...rows.filter((row) => value(row) === ""));
    for (const other of all("th", table)) other.removeAttribute("aria-sort");
    const order = down ? "descending" : "ascending";
    heading.setAttribute("aria-sort", order);
    announce.textContent = `Sorted by ${heading.textContent.trim()}, ${order}`;
  };

  for (const table of all("table.sortable")) {
    all("th", table).forEach((heading, column) => {
      if (!heading.dataset.sort) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, heading, column));
      heading.append(button);
    });
  }

  // Filters: rows, then what has no rows left.
  const form = document.querySelector("form.filters");
  const articles = all("article[data-reading]").map((article) => ({
    article,
    reading: article.dataset.reading,
    name: article.closest("section").querySelector("h3").textContent.toLowerCase(),
    overview: document.querySelector(`tr[data-article="${article.id}"]`),
    rows: all("tr[data-verdict]", article).map((row) => ({
      row,
      text: row.textContent.toLowerCase(),
    })),
  }));
  const total = articles.reduce((sum, { rows }) => sum + rows.length, 0);
  const verdicts = all('input[name="verdict"]', form).length;

  const filter = () => {
    const chosen = new FormData(form);
    const wanted = new Set(chosen.getAll("verdict"));
    const words = chosen.get("text").toLowerCase().split(/\s+/).filter(Boolean);
    const [grade, reading] = [chosen.get("grade"), chosen.get("reading")];
    const everything = wanted.size === verdicts && !grade && !words.length;
    let left = 0;
    for (const entry of articles) {
      let here = 0;
      for (const { row, text } of entry.rows) {
        const shown =
          wanted.has(row.dataset.verdict) &&
          (!grade || row.dataset.grade === grade) &&
          (!reading || entry.reading === reading) &&
          words.every((word) => text.includes(word) || entry.name.includes(word));
        row.hidden = !shown;
        here += shown;
      }
      const kept = here > 0 || (everything && (!reading || entry.reading === reading));
      entry.article.hidden = !kept;
      if (entry.overview) entry.overview.hidden = !kept;
      left += here;
    }
    for (const section of all("section.theorem"))
      section.hidden = all("article", section).every((article) => article.hidden);
    form.querySelector(".count").value = `${left} of ${total} regimes`;
    document.querySelector("p.empty").hidden = articles.some(({ article }) => !article.hidden);
  };

  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();

  // A link into the filtered part shows what it leads to.
  const reveal = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.closest("[hidden]")) {
      form.reset();
      setTimeout(() => target.scrollIntoView());
    }
  };
  addEventListener("hashchange", reveal);

  // Only what scrolls needs to be reached by keyboard.
  const reach = () => {
    for (const box of all(".scroll")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  addEventListener("resize", reach);
  document.addEventListener("toggle", reach, true);
  reach();

  // On paper everything is open.
  addEventListener("beforeprint", () => {
    for (const box of all("details")) {
      box.dataset.was = box.open ? "open" : "";
      box.open = true;
    }
  });
  addEventListener("afterprint", () => {
    for (const box of all("details")) box.open = box.dataset.was === "open";
  });
})();
