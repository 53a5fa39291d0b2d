// Building the page: elements, tables, lists that keep their elements. Text goes in as text nodes
// alone, so that nothing a message holds is ever read as HTML.

/** An element; children are nodes or texts, absent ones are left out. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  append(made, children);
  return made;
}

function append(parent, children) {
  for (const child of children.flat()) {
    if (child === undefined || child === null || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Puts these children in place of what is there. */
export function fill(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
}

/** Writes a text only where it differs, so that a reader's place is kept. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * A table with a caption. On narrow screens the rows become blocks and each cell shows its
 * column's name; the roles keep it a table for screen readers all the same.
 */
export function table(caption, columns, rows, body = el("tbody", { role: "rowgroup" })) {
  const heads = columns.map((name) => el("th", { scope: "col", role: "columnheader" }, name));
  body.append(...rows.map((cells) => row(columns, cells)));
  return el(
    "table",
    { role: "table" },
    el("caption", {}, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)),
    body,
  );
}

/** A row whose first cell names it. */
export function row(columns, cells) {
  const made = cells.map((cell, at) => {
    const label = { "data-label": columns[at] };
    return at === 0
      ? el("th", { scope: "row", role: "rowheader", ...label }, cell)
      : el("td", { role: "cell", ...label }, cell);
  });
  return el("tr", { role: "row" }, made);
}

/**
 * Makes the children of a parent those of the items, in their order. Elements of items that were
 * there before are updated and stay, and with them the focus.
 */
export function reconcile(parent, items, keyOf, create, update) {
  const before = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let child = before.get(key);
    before.delete(key);
    if (!child) {
      child = create(item);
      child.dataset.key = key;
    }
    update(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const gone of before.values()) gone.remove();
}

/** A form's field with its label, which stay together. */
export function field(label, control) {
  return el("span", { class: "field" }, el("label", { for: control.id }, label), control);
}

/** A word with a colour of its own; the word says it without the colour. */
export function tag(word) {
  return el("span", { class: `tag ${word}` }, word);
}

/** Says something to those who do not see the page. */
export function announce(text) {
  setText(document.getElementById("announce"), text);
}
