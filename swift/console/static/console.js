"use strict";
(() => {
  const ROOT = "/console";
  const HIDDEN = /(?! )[\p{C}\p{Z}\u{34f}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{180b}-\u{180f}\u{2800}\u{3164}\u{fe00}-\u{fe0f}\u{ffa0}\u{e0100}-\u{e01ef}]/gu;
  const PART_BYTES = 16 * 1024 * 1024;
  const PARALLEL = 2;
  const ATTEMPTS = 8;
  const SHOWN = 100;
  let csrf = document.body.dataset.csrf || "";

  const visible = (text) => text.replace(HIDDEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const backoff = (attempt) => Math.min(30000, 500 * 2 ** attempt) * (0.75 + Math.random() / 2);
  const address = (path, query) => `${ROOT}${path}?${new URLSearchParams(query)}`;
  const filled = (text, values) => text.replace(/\{(\w+)\}/g, (whole, key) => (key in values ? values[key] : whole));

  function sizeText(bytes) {
    const units = ["bytes", "KB", "MB", "GB", "TB", "PB"];
    let unit = 0;
    while (bytes >= 999.5 && unit + 1 < units.length) { bytes /= 1000; unit += 1; }
    return `${bytes.toFixed(unit && bytes < 99.5 ? 1 : 0)} ${units[unit]}`;
  }

  // Sends a request; resolves to {status, body}, with the status 0 if the connection broke.
  function send(method, url, { body = null, onProgress = null, signal = null, headers = {} } = {}) {
    return new Promise((resolve) => {
      const request = new XMLHttpRequest();
      const end = () => {
        let value = {};
        try { value = JSON.parse(request.responseText); } catch { /* The status says enough. */ }
        resolve({ status: request.status, body: value, wait: Number(request.getResponseHeader("Retry-After")) || 0 });
      };
      request.open(method, url);
      request.setRequestHeader("Accept", "application/json");
      request.setRequestHeader("X-CSRF-Token", csrf);
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.onloadend = end;
      if (onProgress) request.upload.onprogress = (event) => onProgress(event.loaded);
      if (signal) signal.addEventListener("abort", () => request.abort(), { once: true });
      if (signal && signal.aborted) resolve({ status: 0, body: {} });
      else request.send(body);
    });
  }

  const isTemporary = (status) => status === 0 || status === 408 || status === 429 || status >= 500;

  // Parts of pages that work on their own.

  document.addEventListener("change", (event) => {
    if (!event.target.matches("[data-check-all]")) return;
    const boxes = event.target.closest("form").querySelectorAll("tbody input[type=checkbox]");
    for (const box of boxes) box.checked = event.target.checked;
  });

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.confirm && !window.confirm(form.dataset.confirm)) event.preventDefault();
    else if (form.matches("[data-steps]")) { event.preventDefault(); deleteAll(form); }
  });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const field = document.getElementById(button.dataset.copy);
    field.select();
    try { await navigator.clipboard.writeText(field.value); } catch { document.execCommand("copy"); }
    button.textContent = button.dataset.copied;
  });

  function prepare(root) {
    for (const found of root.querySelectorAll("[data-check-all], [data-copy]")) found.hidden = false;
  }
  prepare(document);
  document.addEventListener("htmx:afterSettle", () => {
    prepare(document);
    // What had the focus may be gone.
    const list = document.getElementById("listing");
    if (list && document.activeElement === document.body) list.focus({ preventScroll: true });
  });

  // Repeats the step of a deletion until nothing is left.
  async function deleteAll(form) {
    const part = (name) => form.querySelector(`[data-part=${name}]`);
    const stop = form.querySelector("[data-do=stop]");
    const fields = new URLSearchParams(new FormData(form));
    let isStopped = false;
    let isDone = false;
    let text = "";
    stop.onclick = () => { isStopped = true; };
    stop.hidden = false;
    const buttons = form.querySelectorAll("button:not([data-do])");
    for (const button of buttons) button.disabled = true;
    for (let attempt = 0; !isStopped; ) {
      const found = await send("POST", form.action, {
        body: fields.toString(), headers: { "Content-Type": "application/x-www-form-urlencoded" },
      });
      if (isTemporary(found.status) && attempt < ATTEMPTS) { await sleep(backoff(attempt)); attempt += 1; continue; }
      if (found.status !== 200) { text = `${text} ${found.body.error || found.status}`; break; }
      attempt = 0;
      const { deleted, failed, failures, left, done } = found.body;
      for (const each of failures) {
        if (part("failures").childElementCount >= SHOWN) break;
        const item = document.createElement("li");
        item.textContent = `${each.name}: ${each.reason}`;
        part("failures").append(item);
      }
      for (const name of ["name", "folder"]) {
        fields.delete(name);
        for (const each of left[name]) fields.append(name, encodeURIComponent(each));
      }
      fields.set("marker", encodeURIComponent(left.marker));
      fields.set("deleted", deleted);
      fields.set("failed", failed);
      text = filled(form.dataset.state, { deleted, failed });
      if (done) { text = `${text} ${form.dataset.done}`; isDone = true; break; }
      part("state").textContent = text;
    }
    part("state").textContent = isStopped ? `${text} ${form.dataset.stopped}` : text;
    stop.hidden = true;
    for (const button of buttons) button.disabled = isDone;
  }

  // Uploads.

  const panel = document.getElementById("uploads");
  if (!panel) return;
  panel.hidden = false;
  const texts = JSON.parse(panel.dataset.texts);
  const user = panel.dataset.user;
  const part = (name) => panel.querySelector(`[data-part=${name}]`);
  const listing = () => document.getElementById("listing");
  const transfers = [];
  let isPaused = false;
  let forAll = "";
  let questions = Promise.resolve();
  let login = null;
  const totals = { files: 0, bytes: 0, sent: 0, done: 0, failed: 0 };

  class Refused extends Error {}
  class Interrupted extends Error {}

  // Ids of uploads in parts, so that the same file goes on after a reload. They are no secrets.
  const memory = {
    key: `swift-console-uploads:${user}`,
    all() { try { return JSON.parse(localStorage.getItem(this.key)) || {}; } catch { return {}; } },
    change(change) {
      const known = this.all();
      change(known);
      const newest = Object.entries(known).sort((a, b) => b[1].time - a[1].time).slice(0, 500);
      try { localStorage.setItem(this.key, JSON.stringify(Object.fromEntries(newest))); } catch { /* It is full or off. */ }
    },
    get(name) { return this.all()[name]; },
    set(name, upload) { this.change((known) => { known[name] = { ...upload, time: Date.now() }; }); },
    remove(name) { this.change((known) => { delete known[name]; }); },
  };

  class Transfer {
    constructor(file, bucket, name) {
      Object.assign(this, { file, bucket, name, sent: 0, state: "waiting", row: null, isChecked: false });
      this.control = new AbortController();
      this.query = { bucket, name };
      this.memoryName = JSON.stringify([bucket, name, file.size, file.lastModified]);
    }

    set(state, note = "") {
      this.state = state;
      this.note = note;
      this.show();
    }

    progress(sent) {
      totals.sent += sent - this.sent;
      this.sent = sent;
      if (this.row) this.row.querySelector("progress").value = this.file.size ? sent / this.file.size : 1;
      showTotals();
    }

    show() {
      if (!this.row) {
        if (this.state === "waiting") return;
        this.row = document.createElement("li");
        const name = document.createElement("bdi");
        name.textContent = visible(this.name);
        const bar = document.createElement("progress");
        bar.max = 1;
        bar.value = 0;
        bar.setAttribute("aria-label", visible(this.name));
        const buttons = document.createElement("span");
        for (const [key, act] of [["pause", () => this.pause()], ["resume", () => this.resume()], ["cancel", () => this.cancel()]]) {
          const button = document.createElement("button");
          button.type = "button";
          button.dataset.act = key;
          button.textContent = texts[key];
          button.setAttribute("aria-label", `${texts[key]}: ${visible(this.name)}`);
          button.onclick = act;
          buttons.append(button);
        }
        this.row.append(name, document.createElement("span"), buttons, bar);
        part("list").prepend(this.row);
        while (part("list").childElementCount > SHOWN) {
          const old = [...part("list").children].reverse().find((row) => row.classList.contains("ended"));
          if (!old) break;
          old.remove();
        }
      }
      this.row.children[1].textContent = this.note ? `${texts[this.state]}: ${this.note}` : texts[this.state];
      const buttons = this.row.children[2].children;
      buttons[0].hidden = this.state !== "running";
      buttons[1].hidden = this.state !== "paused" && this.state !== "failed";
      buttons[2].hidden = this.isEnded && this.state !== "failed";
      this.row.classList.toggle("ended", this.isEnded);
    }

    get isEnded() { return ["done", "failed", "cancelled", "skipped"].includes(this.state); }

    pause() {
      if (this.state !== "running" && this.state !== "waiting") return;
      this.set("paused");
      this.control.abort();
    }

    resume() {
      if (this.state === "failed") totals.failed -= 1;
      else if (this.state !== "paused") return;
      this.set("waiting");
      next();
    }

    async cancel() {
      if (this.isEnded && this.state !== "failed") return;
      if (this.state === "failed") totals.failed -= 1;
      this.set("cancelled");
      this.control.abort();
      this.forget();
      const known = memory.get(this.memoryName);
      memory.remove(this.memoryName);
      if (known) await send("POST", address("/upload/abort", { ...this.query, upload: known.id }), FORM);
      next();
    }

    // Takes the file out of the totals.
    forget() {
      totals.files -= 1;
      totals.bytes -= this.file.size;
      totals.sent -= this.sent;
      this.sent = 0;
      showTotals();
    }

    async run() {
      this.control = new AbortController();
      this.set("running");
      const { control } = this;
      try {
        if (!this.name.isWellFormed()) throw new Refused(texts.bad_name);
        if (!this.isChecked && !(await this.mayWrite())) {
          if (this.state === "running") { this.set("skipped"); this.forget(); }
          return;
        }
        this.isChecked = true;
        if (this.file.size <= PART_BYTES || !(await this.sendParts())) await this.sendWhole();
        this.progress(this.file.size);
        totals.done += 1;
        this.set("done");
      } catch (error) {
        if (control.signal.aborted) return;
        totals.failed += 1;
        this.set("failed", error instanceof Refused ? error.message : texts.interrupted);
      }
    }

    // Asks before an object is overwritten.
    async mayWrite() {
      if (memory.get(this.memoryName)) return true;
      const found = await this.request("GET", address("/upload/exists", this.query));
      if (!found.exists) return true;
      return (await ask(this)) === "overwrite";
    }

    // Repeats a request after failures that pass; raises Refused for the others.
    async request(method, url, options = {}) {
      const { signal } = this.control;
      for (let attempt = 0; ; attempt += 1) {
        const found = await send(method, url, { ...options, signal });
        if (signal.aborted) throw new Interrupted();
        if (found.status >= 200 && found.status < 300) {
          if (this.note) this.set("running");
          return found.body;
        }
        let { status } = found;
        // Of a refusal while the body was sent often only the end of the connection arrives.
        if (status === 0) status = (await send("GET", `${ROOT}/session`, { signal })).status === 401 ? 401 : 0;
        if (status === 401) { await loggedIn(); attempt = -1; continue; }
        if (status === 403 && (await renewToken())) { continue; }
        if (!isTemporary(status)) throw Object.assign(new Refused(found.body.error || String(status)), { status });
        if (attempt >= ATTEMPTS) throw new Interrupted();
        this.set("running", texts.retrying);
        await sleep(Math.max(found.wait * 1000, backoff(attempt)));
        if (signal.aborted) throw new Interrupted();
      }
    }

    async sendWhole() {
      await this.request("PUT", address("/upload/whole", this.query), {
        body: this.file, onProgress: (sent) => this.progress(Math.min(sent, this.file.size)),
      });
    }

    // Sends a large file in parts; returns false where it must be sent whole.
    async sendParts() {
      let upload = memory.get(this.memoryName);
      const stored = new Map();
      if (upload) {
        try {
          const { parts } = await this.request("GET", address("/upload/parts", { ...this.query, upload: upload.id }));
          for (const each of parts) stored.set(each.number, each.size);
          this.set("running", texts.resumed);
        } catch (error) {
          if (!(error instanceof Refused) || error.status !== 404) throw error;
          upload = null;
        }
      }
      if (!upload) {
        const fields = new URLSearchParams({ size: this.file.size, type: this.file.type });
        const begun = await this.request("POST", address("/upload/begin", this.query), form(fields));
        if (begun.whole) return false;
        upload = { id: begun.upload, partBytes: begun.part_bytes };
        memory.set(this.memoryName, upload);
      }
      let sent = 0;
      for (let number = 1; (number - 1) * upload.partBytes < this.file.size; number += 1) {
        const body = this.file.slice((number - 1) * upload.partBytes, number * upload.partBytes);
        if (stored.get(number) !== body.size) {
          const before = sent;
          await this.request("PUT", address("/upload/part", { ...this.query, upload: upload.id, part: number }), {
            body, onProgress: (bytes) => this.progress(before + Math.min(bytes, body.size)),
          });
        }
        sent += body.size;
        this.progress(sent);
      }
      try {
        await this.request("POST", address("/upload/complete", { ...this.query, upload: upload.id }), form(new URLSearchParams({ size: this.file.size })));
      } catch (error) {
        if (error instanceof Refused) memory.remove(this.memoryName);
        throw error;
      }
      memory.remove(this.memoryName);
      return true;
    }
  }

  const form = (fields) => ({ body: fields.toString(), headers: { "Content-Type": "application/x-www-form-urlencoded" } });
  const FORM = form(new URLSearchParams());

  // Fetches the token of the session; false if it is the one that is used.
  async function renewToken() {
    const found = await send("GET", `${ROOT}/session`);
    if (found.status !== 200) return false;
    if (found.body.user !== user) {
      isPaused = true;
      throw new Refused(texts.other_user);
    }
    const isNew = found.body.csrf !== csrf;
    csrf = found.body.csrf;
    document.body.dataset.csrf = csrf;
    document.body.setAttribute("hx-headers", JSON.stringify({ "X-CSRF-Token": csrf }));
    for (const field of document.querySelectorAll("input[name=csrf]")) field.value = csrf;
    return isNew;
  }

  // Waits for the next log-in, in another tab.
  function loggedIn() {
    login = login || (async () => {
      part("session").hidden = false;
      try {
        for (;;) {
          if ((await send("GET", `${ROOT}/session`)).status === 200) { await renewToken(); return; }
          await sleep(3000);
        }
      } finally {
        part("session").hidden = true;
        login = null;
      }
    })();
    return login;
  }

  // Asks what happens to an object that is there; one question at a time.
  function ask(transfer) {
    const answer = questions.then(() => forAll || (transfer.isEnded ? "skip" : new Promise((resolve) => {
      const dialog = part("ask");
      part("question").textContent = filled(texts.exists, { name: visible(transfer.name) });
      dialog.onclick = (event) => {
        if (event.target.dataset.answer) dialog.close(event.target.dataset.answer);
      };
      dialog.onclose = () => {
        const chosen = dialog.returnValue || "skip";
        if (part("all").checked) forAll = chosen;
        resolve(chosen);
      };
      dialog.returnValue = "";
      dialog.showModal();
    })));
    questions = answer.catch(() => "skip");
    return answer;
  }

  function showTotals() {
    part("work").hidden = false;
    part("total").value = totals.bytes ? totals.sent / totals.bytes : totals.done / Math.max(1, totals.files);
    const values = { done: totals.done, all: totals.files, failed: totals.failed, sent: sizeText(totals.sent), size: sizeText(totals.bytes) };
    part("summary").textContent = filled(texts.summary, values);
  }

  function next() {
    let running = transfers.filter((each) => each.state === "running").length;
    while (!isPaused && running < PARALLEL) {
      const transfer = transfers.find((each) => each.state === "waiting");
      if (!transfer) break;
      running += 1;
      transfer.run().then(next);
    }
    if (!running && !transfers.some((each) => each.state === "waiting")) {
      forAll = "";
      refresh();
    }
    for (let i = transfers.length - 1; i >= 0; i -= 1) if (["done", "cancelled", "skipped"].includes(transfers[i].state)) transfers.splice(i, 1);
    showTotals();
  }

  // Loads the list of objects again, if it is still that of the files.
  function refresh() {
    if (totals.done && !document.querySelector("#listing tbody input:checked")) {
      window.htmx.ajax("GET", location.pathname + location.search, { target: "#listing", select: "#listing", swap: "outerHTML show:none" });
    }
  }

  function add(files) {
    const bucket = decodeURIComponent(listing().dataset.bucket);
    const prefix = decodeURIComponent(listing().dataset.prefix);
    for (const { file, path } of files) {
      const transfer = new Transfer(file, bucket, prefix + path);
      totals.files += 1;
      totals.bytes += file.size;
      transfers.push(transfer);
    }
    next();
  }

  for (const input of panel.querySelectorAll("[data-pick]")) {
    input.onchange = () => {
      add([...input.files].map((file) => ({ file, path: file.webkitRelativePath || file.name })));
      input.value = "";
    };
  }

  // Reads what was dropped; folders with all that is in them.
  async function dropped(entry, found) {
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      found.push({ file, path: entry.fullPath.replace(/^\//, "") });
    } else if (entry.isDirectory) {
      const reader = entry.createReader();
      for (;;) {
        const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
        if (!entries.length) break;
        for (const each of entries) await dropped(each, found);
      }
    }
  }

  const target = document.getElementById("main");
  target.addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    target.classList.add("dropping");
  });
  target.addEventListener("dragleave", () => target.classList.remove("dropping"));
  target.addEventListener("drop", async (event) => {
    target.classList.remove("dropping");
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    if (!entries.length) return;
    event.preventDefault();
    const found = [];
    for (const entry of entries) {
      try { await dropped(entry, found); } catch { part("work").hidden = false; part("summary").textContent = `${texts.unreadable}: ${visible(entry.name)}`; }
    }
    if (found.length) add(found);
  });

  function pauseAll() {
    isPaused = true;
    for (const each of transfers) if (each.state === "running") each.pause();
  }
  const acts = {
    pause: pauseAll,
    resume() {
      isPaused = false;
      for (const each of transfers) if (each.state === "paused") each.set("waiting");
      next();
    },
    cancel() {
      isPaused = false;
      for (const each of [...transfers]) each.cancel();
    },
  };
  panel.addEventListener("click", (event) => {
    const act = acts[event.target.dataset.do];
    if (act) act();
  });

  window.addEventListener("beforeunload", (event) => {
    if (transfers.some((each) => each.state === "running" || each.state === "waiting")) event.preventDefault();
  });
})();
