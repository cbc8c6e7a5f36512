// The engine in the browser: Pyodide, and Penstock's own package beside it.

import { loadPyodide } from "./pyodide/pyodide.mjs";

async function started() {
  const python = await loadPyodide();
  const archive = await (await fetch("penstock.zip")).arrayBuffer();
  python.unpackArchive(archive, "zip");
  return python.runPython("from penstock.playground.api import answer; answer");
}

const engine = started();

self.onmessage = async ({ data }) => {
  try {
    self.postMessage({ number: data.number, text: (await engine)(data.text) });
  } catch (error) {
    self.postMessage({ number: data.number, error: String(error.message ?? error) });
  }
};
