"use strict";
const table = document.getElementById("table");
if (table) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, k) => head.firstElementChild.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") === "descending" || (!head.hasAttribute("aria-sort") && !head.classList.contains("n"));
    heads.forEach(h => h.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = row => { const t = row.cells[k].textContent; return head.classList.contains("n") ? Number(t) : t; };
    const rows = [...body.rows].sort((a, b) => { const x = value(a), y = value(b); return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1); });
    body.append(...rows);
  }));
  document.getElementById("filter").addEventListener("input", e => {
    const want = e.target.value.toLowerCase();
    for (const row of body.rows) row.hidden = !row.cells[0].textContent.toLowerCase().includes(want);
  });
}
// Paper has no buttons: what is folded is opened for it.
const folded = () => document.querySelectorAll("details:not([open])");
let opened = [];
addEventListener("beforeprint", () => { opened = [...folded()]; for (const d of opened) d.open = true; });
addEventListener("afterprint", () => { for (const d of opened) d.open = false; });
