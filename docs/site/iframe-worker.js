"use strict";
// A page opened from disk may start no worker. The search then runs in a hidden frame, which
// answers as a worker does.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      addEventListener("message", event => {
        if (event.source !== this.inside) return;
        const copy = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(copy);
        this.onmessage?.(copy);
      });
      const page = this.inside.document;
      page.open();
      page.write("<!doctype html><script>postMessage = data => parent.postMessage(data, '*');"
        + "importScripts = (...urls) => urls.reduce((last, url) => last.then(() => new Promise((ok, no) => {"
        + "const one = document.createElement('script'); one.src = url; one.onload = ok; one.onerror = no;"
        + "document.body.append(one); })), Promise.resolve());</script><body></body>");
      page.close();
      const script = page.createElement("script");
      script.src = new URL(url, location.href);
      this.ready = new Promise(ok => { script.onload = ok; });
      page.body.append(script);
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })));
    }
    terminate() { this.inside.frameElement.remove(); }
  };
}
