// Who plays: the engine behind this server, or the same engine in the browser, in a worker.

async function json(path, options) {
  const answer = await fetch(path, options);
  if (answer.status === 403) throw new Error("this page's key is gone: open the address that penstock play printed");
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer.json();
}

function server() {
  return {
    name: "played by the reference engine, on this machine",
    starting: "the engine is playing …",
    lessons: () => json("lessons.json"),
    play: (asked) =>
      json("play", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(asked) }),
    prepare: () => {},
  };
}

function worker() {
  const engine = new Worker("worker.js", { type: "module" });
  const waiting = new Map();
  let number = 0;
  let broken = null;
  engine.onmessage = ({ data }) => {
    const [resolve, reject] = waiting.get(data.number);
    waiting.delete(data.number);
    if (data.error) reject(new Error(data.error));
    else resolve(JSON.parse(data.text));
  };
  engine.onerror = () => {
    broken = new Error("the engine did not start in this browser: the presets can be looked at, and nothing else");
    waiting.forEach(([, reject]) => reject(broken));
    waiting.clear();
  };
  return (asked) => new Promise((resolve, reject) => {
    if (broken) {
      reject(broken);
      return;
    }
    number += 1;
    waiting.set(number, [resolve, reject]);
    engine.postMessage({ number, text: JSON.stringify(asked) });
  });
}

// What the engine gave for the presets is shipped, so that a page is there before the engine is. The engine starts
// when the first page has been drawn (`prepare`), or when something is asked that was not shipped.
function browser() {
  let started = null;
  const ask = (asked) => (started ??= worker())(asked);
  const shipped = json("shown.json");
  const same = (one, asked) =>
    one.lesson === asked.lesson && Object.entries(asked.values).every(([name, value]) => one.values[name] === value);
  return {
    name: "played by the reference engine, in this browser",
    starting: "the engine is starting in this browser, a few seconds …",
    lessons: () => json("lessons.json"),
    play: async (asked) => {
      const kept = (await shipped).find((one) => same(one, asked));
      return kept ? { ...kept, by: "as the reference engine gave it when this page was made" } : ask(asked);
    },
    ask,
    prepare: () => { started ??= worker(); },
  };
}

let made = null;

export function backend() {
  made ??= document.documentElement.dataset.engine === "server" ? server() : browser();
  return made;
}
