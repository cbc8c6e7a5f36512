// News by server-sent events: the browser comes back by itself, and says what it has heard last.

export function listen(held, { news, another, link }) {
  const source = new EventSource("events");
  let begun = null;
  source.addEventListener("begun", (event) => {
    const told = JSON.parse(event.data);
    if (begun !== null && told !== begun) {
      held.forget();
      another();
    }
    begun = told;
  });
  source.addEventListener("standing", (event) => {
    held.stands(JSON.parse(event.data));
    news();
  });
  source.addEventListener("batches", (event) => {
    held.take(JSON.parse(event.data));
    news();
  });
  source.onopen = () => link("live");
  source.onerror = () => {
    // A refusal, as after a restart with another key, is not tried again by the browser.
    link(source.readyState === EventSource.CLOSED ? "closed" : "lost");
  };
  return source;
}
