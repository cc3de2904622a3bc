"use strict";
const plan = JSON.parse(document.querySelector('script[type="application/json"]').textContent);
const boxes = [...document.querySelectorAll("fieldset")], last = plan.columns.length - 1;
const chosen = (box) => box.querySelector(":checked")?.value ?? "";
const count = () => {
  document.querySelector("#left").textContent = `${boxes.filter((box) => chosen(box) === "").length} left`;
};
for (const box of boxes) { // grades that were chosen before, in this browser or in the file
  const key = plan.key + box.dataset.row, kept = localStorage.getItem(key) ?? plan.rows[box.dataset.row][last];
  for (const input of box.querySelectorAll("input")) input.checked = input.value === kept;
  box.addEventListener("change", () => { localStorage.setItem(key, chosen(box)); count(); });
}
const cell = (text) => /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
document.querySelector("#save").addEventListener("click", () => {
  for (const box of boxes) plan.rows[box.dataset.row][last] = chosen(box);
  const text = [plan.columns, ...plan.rows].map((row) => `${row.map(cell).join(",")}\n`).join("");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = plan.name;
  link.click();
});
count();
