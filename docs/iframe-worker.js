/* Search from disk. A browser starts no worker for a page that was opened as a file, so the theme's search runs in
   a hidden frame instead, which answers to the worker's few names. Over HTTP nothing changes. */
"use strict";
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      // Scripts that the search asks for (stemmers of other languages) are loaded in turn.
      this.inside.importScripts = (...urls) =>
        urls.reduce(
          (before, next) => before.then(() => this.run(new URL(next, url).href)),
          Promise.resolve(),
        );
      this.inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        this.onmessage?.(event);
      };
      this.ready = this.run(url);
    }

    run(url) {
      return new Promise((done, failed) => {
        const script = this.inside.document.createElement("script");
        Object.assign(script, { src: url, onload: done, onerror: failed });
        this.inside.document.body.append(script);
      });
    }

    postMessage(data) {
      this.ready.then(() =>
        this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })),
      );
    }

    terminate() {
      this.inside.frameElement?.remove();
    }
  };
}
