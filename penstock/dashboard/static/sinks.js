// Sinks: the ledger of each against the checkpoint, batches that were run again, and whether any differed.

import { clock, count, html, many, swap, table } from "./making.js";

export function sinks(held) {
  const said = html("p", { class: "lead" });
  const list = html("div");
  const replays = html("div");

  function update() {
    const last = held.last();
    const told = held.standing;
    if (last === null || told === null) {
      said.textContent = "No batch has ended yet.";
      return;
    }
    const again = held.batches.filter((one) => one.replayed);
    said.textContent = words(told, last, again);
    const names = Object.keys(last.sinks).filter((name) => !name.startsWith("kept/")).sort();
    swap(list, table(["sink", "how it stands", { number: "given last" }, { number: "its ledger says" }, { number: "checkpoint" }],
      names.map((name) => row(name, last, told)), { className: "stack", caption: "Sinks", empty: "no sink was given a row yet" }));
    swap(replays, table(["batch", "its clock", "which sinks had it already"],
      again.slice(-50).reverse().map((one) => [one.batch, clock(one.now), had(one)]),
      { className: "stack", caption: "Batches that were run again", empty: "none of the batches that are held was run again" }));
  }

  return { title: "Sinks", update, element: html("div", {}, html("h2", {}, "Sinks"), said, list, html("h3", {}, "Replays"), replays,
    html("p", { class: "hint" }, "A batch that is run again is compared with what the sink has, by a fingerprint of its rows. " +
      "Where the two differ the run stops and says so: then it is the first thing on the first page.")) };
}

function row(name, last, told) {
  const given = last.sinks[name];
  const ledger = last.ledgers?.[name]?.batch;
  const since = last.batch - given;
  const differs = ledger !== undefined && ledger !== null && ledger !== given;
  const stand = differs ? html("strong", {}, "✕ the ledger differs from the checkpoint")
    : since > 0 ? `✓ has all: the last ${many(since, "batch", "batches")} had no row for it` : "✓ has all";
  return [name, stand, count(given), ledger === undefined || ledger === null ? "not told" : count(ledger), count(told.committed ?? last.batch)];
}

function had(one) {
  const names = Object.entries(one.ledgers ?? {}).filter(([, held]) => held.had).map(([name]) => name);
  return names.length ? `${names.join(", ")}: not given it again` : "none: each was given it";
}

function words(told, last, again) {
  const waits = told.waiting && ["running", "unknown"].includes(told.state) ? ` Batch ${told.waiting.batch} waits now: ${told.waiting.what}` : "";
  const failed = told.state === "failed" ? ` The run failed: ${told.concerns.find((one) => one.about === "run")?.what ?? ""}` : "";
  const same = failed ? "" : ", and no replay differed from what was written";
  const runs = again.length ? `${many(again.length, "batch was", "batches were")} run again${same}.` : "No batch was run again.";
  return `The checkpoint has batch ${count(last.batch)}. ${runs}${waits}${failed}`;
}
