"use strict";
const plan = JSON.parse(document.querySelector('script[type="application/json"]').textContent);
const pages = [...document.querySelectorAll("article")], boxes = pages.map((page) => page.querySelector("fieldset"));
const last = plan.columns.length - 1, given = []; // places of the grades that were given here, the latest last
const chosen = (box) => box.querySelector(":checked")?.value ?? "";
const key = (box) => plan.key + box.dataset.row;
let here = 0;
const show = (place) => {
  here = Math.min(Math.max(place, 0), pages.length - 1);
  pages.forEach((page, k) => page.classList.toggle("shown", k === here));
  const left = boxes.filter((box) => chosen(box) === "").length;
  document.querySelector("#left").textContent = `document ${here + 1} of ${pages.length}, ${left} left`;
};
const next = () => { // the next document without a grade, else the next one
  const open = boxes.findIndex((box, k) => k > here && chosen(box) === "");
  show(open < 0 ? here + 1 : open);
};
const grade = (value) => {
  const input = [...boxes[here].querySelectorAll("input")].find((own) => own.value === value);
  if (input) { input.checked = true; keep(); }
};
const keep = () => {
  localStorage.setItem(key(boxes[here]), chosen(boxes[here]));
  given.push(here);
  next();
};
const undo = () => {
  if (!given.length) return;
  here = given.pop();
  for (const input of boxes[here].querySelectorAll("input")) input.checked = false;
  localStorage.setItem(key(boxes[here]), "");
  show(here);
};
for (const box of boxes) { // grades that were chosen before, in this browser or in the file
  const kept = localStorage.getItem(key(box)) ?? plan.rows[box.dataset.row][last];
  for (const input of box.querySelectorAll("input")) input.checked = input.value === kept;
  box.addEventListener("change", keep);
}
const cell = (text) => /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
const save = () => {
  for (const box of boxes) plan.rows[box.dataset.row][last] = chosen(box);
  const text = [plan.columns, ...plan.rows].map((row) => `${row.map(cell).join(",")}\n`).join("");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = plan.name;
  link.click();
};
const actions = { ArrowLeft: () => show(here - 1), ArrowRight: () => show(here + 1), u: undo, U: undo };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^[0-9]$/.test(event.key)) grade(event.key);
  else if (event.key in actions) actions[event.key]();
  else return;
  event.preventDefault();
});
for (const [name, action] of Object.entries({ back: () => show(here - 1), on: () => show(here + 1), undo, save })) {
  document.querySelector(`#${name}`).addEventListener("click", action);
}
const open = boxes.findIndex((box) => chosen(box) === "");
show(open < 0 ? 0 : open);
