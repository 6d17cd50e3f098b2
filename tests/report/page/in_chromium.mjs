// Opens pages in headless Chromium and says, as JSON, what each did and how it lies.
//   node in_chromium.mjs CHROMIUM < jobs.json      a job: {page, width, dark, script, print, press, shot,
//   of: what the picture shows, a selector; tall: its greatest height; scale: pixels of it per pixel}
// Speaks the DevTools protocol over Node's own WebSocket: no package is needed.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const jobs = JSON.parse(readFileSync(0, "utf8"));
const home = mkdtempSync(join(tmpdir(), "rlprof-chromium-"));
const browser = spawn(process.argv[2], [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--remote-debugging-port=0", `--user-data-dir=${home}`, "about:blank",
], { stdio: ["ignore", "ignore", "pipe"], detached: true });
const over = new Promise(ok => browser.on("exit", ok));
const end = async () => {
  try { process.kill(-browser.pid, "SIGKILL"); } catch {}
  await over;
  rmSync(home, { recursive: true, force: true, maxRetries: 5 });
};
setTimeout(async () => { console.error("chromium: no answer in time"); await end(); process.exit(1); }, 90_000).unref();

const address = await new Promise((ok, no) => {
  let said = "";
  browser.stderr.on("data", data => {
    said += data;
    const found = /ws:\/\/\S+/.exec(said);
    if (found) ok(found[0]);
  });
  browser.on("exit", code => no(new Error(`chromium ended with ${code}: ${said}`)));
});
const socket = new WebSocket(address);
await new Promise(ok => socket.addEventListener("open", ok));
let id = 0;
const waiting = new Map(), listeners = new Map();
const send = (method, params = {}, sessionId = undefined) => new Promise((ok, no) => {
  waiting.set(++id, [ok, no]);
  socket.send(JSON.stringify({ id, method, params, sessionId }));
});
socket.addEventListener("message", ({ data }) => {
  const message = JSON.parse(data);
  if (!message.id) { listeners.get(message.sessionId)?.(message); return; }
  const [ok, no] = waiting.get(message.id);
  if (message.error) no(new Error(JSON.stringify(message.error))); else ok(message.result);
});

async function look({ page, width = 1200, dark = false, script = true, print = false, shot = "", press = [], of = "html", tall = Infinity, scale = 1 }) {
  const url = pathToFileURL(page).href, seen = { requests: [], console: [], errors: [], dialogs: [] };
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const here = (method, params) => send(method, params, sessionId);
  listeners.set(sessionId, ({ method, params }) => {
    if (method === "Network.requestWillBeSent" && !params.request.url.startsWith("data:") && params.request.url !== url) seen.requests.push(params.request.url);
    if (method === "Runtime.consoleAPICalled") seen.console.push(JSON.stringify(params.args).slice(0, 300));
    if (method === "Log.entryAdded") seen.console.push(params.entry.text.slice(0, 300));
    if (method === "Runtime.exceptionThrown") seen.errors.push(params.exceptionDetails.text);
    if (method === "Page.javascriptDialogOpening") {
      seen.dialogs.push(params.message);
      here("Page.handleJavaScriptDialog", { accept: false });
    }
  });
  for (const domain of ["Page", "Network", "Runtime", "Log"]) await here(`${domain}.enable`);
  await here("Emulation.setDeviceMetricsOverride", { width, height: 900, deviceScaleFactor: 1, mobile: width < 600 });
  if (shot) await here("Emulation.setScrollbarsHidden", { hidden: true });
  await here("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
  await here("Emulation.setScriptExecutionDisabled", { value: !script });
  const began = performance.now();
  await here("Page.navigate", { url });
  const run = async expression => (await here("Runtime.evaluate", { expression, returnByValue: true })).result.value;
  const wanted = script ? "document.documentElement.dataset.ready === ''" : "document.readyState === 'complete'";
  let ready = false;
  while (!(ready = await run(wanted)) && performance.now() - began < 10_000) await new Promise(ok => setTimeout(ok, 10));
  const ready_s = (performance.now() - began) / 1000;
  for (const key of press) {
    await run("document.querySelector('canvas').focus()");
    await here("Input.dispatchKeyEvent", { type: "keyDown", key, text: key.length === 1 ? key : undefined });
  }
  await new Promise(ok => setTimeout(ok, 150));
  const facts = await run(`({
    overflow_px: document.documentElement.scrollWidth - innerWidth,
    painted: (() => { const c = document.querySelector("#gantt canvas"); if (!c || !c.width) return 0;
      const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; let n = 0;
      for (let i = 3; i < d.length; i += 4) n += d[i] > 200; return n / (d.length / 4); })(),
    says: document.querySelector("#gantt output")?.textContent ?? "",
    canvas: !!document.querySelector("#gantt canvas")?.checkVisibility(),
    still: !!document.querySelector("#still svg")?.checkVisibility(),
    headings: [...document.querySelectorAll("h2")].map(h => h.textContent),
    paper: getComputedStyle(document.documentElement).backgroundColor,
    ran: window.__ran ?? null,
    foreign: document.querySelectorAll("main img:not([src^='data:image/png']), iframe, object, embed, main script, main link, form").length,
  })`);
  const pdf = print ? Buffer.from((await here("Page.printToPDF")).data, "base64") : Buffer.alloc(0);
  if (shot.endsWith(".pdf")) writeFileSync(shot, pdf);
  else if (shot) {
    const box = await run(`(() => { const b = document.querySelector(${JSON.stringify(of)}).getBoundingClientRect();
      return { x: b.x + scrollX - 8, y: b.y + scrollY, width: b.width + 16, height: b.height }; })()`);
    const clip = { ...box, height: Math.min(box.height, tall), scale };
    const { data } = await here("Page.captureScreenshot", { captureBeyondViewport: true, clip });
    writeFileSync(shot, Buffer.from(data, "base64"));
  }
  await send("Target.closeTarget", { targetId });
  return { ready: !!ready, ready_s, ...facts, pdf_pages: (pdf.toString("latin1").match(/\/Type\s*\/Page\b/g) ?? []).length, ...seen };
}

try {
  const found = [];
  for (const job of jobs) found.push(await look(job));
  console.log(JSON.stringify(found));
} finally {
  await end();
}
