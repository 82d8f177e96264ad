// Parts of pages that the server keeps fresh: data-live is the address of their events.
'use strict';
for (const part of document.querySelectorAll('[data-live]')) {
  let source = null;
  const listen = () => {
    if (source || document.hidden) return;
    source = new EventSource(part.dataset.live);
    // What somebody has moved to by keyboard stays as it is.
    source.onmessage = (event) => { if (!part.contains(document.activeElement)) part.innerHTML = event.data; };
    source.onerror = () => {
      if (source && source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 30000);
    };
  };
  const stop = () => { if (source) source.close(); source = null; };
  document.addEventListener('visibilitychange', () => (document.hidden ? stop() : listen()));
  window.addEventListener('pagehide', stop);
  window.addEventListener('pageshow', listen);
}
