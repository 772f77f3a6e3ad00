"use strict";
// Around textual-serve's terminal: the address of the socket, a size that fits, and a notice when it is closed.

const COLUMNS = 80, LINES = 24, LARGEST = 16, SMALLEST = 9;
const CELL_WIDTH = 0.6005, CELL_HEIGHT = 1.32; // of Roboto Mono, as fractions of its size, rounded up
const PING_MS = 15000, SILENT_MS = 50000;
const LOST = "The connection was lost. Your work is saved.";
const CLOSED = "Closed. Your work is saved.";
const LONG = "That text was too long to be pasted. Your work is saved.", TOO_BIG = 1009;

let notice = "", begun = false;

function fontSize() {
  const across = window.innerWidth / COLUMNS / CELL_WIDTH, down = window.innerHeight / LINES / CELL_HEIGHT;
  return Math.min(LARGEST, Math.floor(Math.min(across, down)));
}

function show(words) {
  document.getElementById("notice").textContent = words;
  const again = document.getElementById("again");
  again.hidden = false;
  again.focus();
}

function takeKeys() {
  const keys = document.querySelector(".xterm-helper-textarea");
  if (keys && !document.body.classList.contains("-closed")) keys.focus();
}

const Socket = window.WebSocket;
window.WebSocket = class extends Socket {
  send(data) {
    if (this.readyState === Socket.OPEN) super.send(data);
  }
  constructor(url) {
    super(url);
    let heard = Date.now();
    const pulse = setInterval(() => {
      if (Date.now() - heard > SILENT_MS) this.close();
      else this.send(JSON.stringify(["ping"]));
    }, PING_MS);
    this.addEventListener("open", () => setTimeout(takeKeys));
    this.addEventListener("message", (event) => {
      heard = Date.now();
      begun = true;
      if (typeof event.data === "string") {
        const [kind, words] = JSON.parse(event.data);
        if (kind === "notice") notice = words;
      }
    });
    this.addEventListener("close", (event) => {
      clearInterval(pulse);
      show(event.code === TOO_BIG ? LONG : notice || (event.wasClean && begun ? CLOSED : LOST));
    });
  }
};

document.addEventListener("DOMContentLoaded", () => {
  const terminal = document.getElementById("terminal");
  terminal.dataset.sessionWebsocketUrl = location.origin.replace(/^http/, "ws") + "/s/ws";
  terminal.dataset.fontSize = Math.max(SMALLEST, fontSize());
  document.getElementById("again").addEventListener("click", () => location.reload());
  const fits = () => { document.getElementById("small").hidden = fontSize() >= SMALLEST; };
  fits();
  window.addEventListener("resize", fits);
  window.addEventListener("focus", takeKeys);
});
