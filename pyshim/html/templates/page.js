// Every table can be read as it is. With this, long ones are filtered and all are sorted.
"use strict";
for (const table of document.querySelectorAll("table")) {
  const box = table.parentNode;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  if (rows.length < 2) continue;

  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const numeric = head.classList.contains("n");
    const key = (row) => {
      const cell = row.cells[column];
      const value = cell.dataset.sort ?? cell.textContent;
      return numeric ? Number.parseFloat(value.replaceAll(",", "")) : value;
    };
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      // What is no number comes last, whichever way.
      if (numeric) return (Number.isNaN(x) - Number.isNaN(y)) * Infinity || x - y;
      return x.localeCompare(y, "en", { numeric: true });
    };
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : numeric;
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows.sort((a, b) => (down ? compare(b, a) : compare(a, b))));
    });
  });

  if (rows.length > 10) {
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = `filter ${rows.length} rows`;
    field.setAttribute("aria-label", field.placeholder);
    field.className = "filter";
    box.before(field);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
  }
}
