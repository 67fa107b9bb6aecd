// Opens the card behind a marker, goes back from a card to its marker, and copies an answer.
// One listener for the page, so every message of the history works, now and later. Four
// habits of the page are put right: Enter sends nothing while there is nothing to send, a new
// question scrolls into view, a message is read aloud as its text, not as the HTML that
// Gradio puts into its label, and the row of filters says whether it is open.
(() => {
  const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  function show(element, focus) {
    const mark = element.offsetHeight > innerHeight / 2 && element.querySelector("mark");
    (mark || element).scrollIntoView({ block: "center", behavior: calm() ? "auto" : "smooth" });
    focus.focus({ preventScroll: true });
    element.classList.remove("aq-flash");
    void element.offsetWidth; // starts the animation again when it has just run
    element.classList.add("aq-flash");
  }

  function openBehind(link) {
    const target = document.getElementById(link.getAttribute("href").slice(1));
    if (!target) return;
    if (target.tagName === "DETAILS") {
      target.open = true;
      show(target, target.querySelector("summary"));
    } else {
      show(target, target);
    }
  }

  // While an answer grows the conversation follows it, until its question has reached the top
  // or the reader has scrolled.
  let following = true;
  let placed = 0;

  function follow() {
    const talk = document.querySelector("#aq-talk [role=log]");
    const question = [...document.querySelectorAll("#aq-talk .aq-question")].pop();
    if (!following || !talk || !question) return;
    const above = question.getBoundingClientRect().top - talk.getBoundingClientRect().top;
    const end = talk.scrollHeight - talk.clientHeight;
    placed = Math.min(end, talk.scrollTop + above - 16);
    if (placed > talk.scrollTop) talk.scrollTop = placed;
  }

  document.addEventListener(
    "scroll",
    (event) => {
      const talk = event.target;
      if (!(talk instanceof Element) || !talk.matches("#aq-talk [role=log]")) return;
      if (Math.abs(talk.scrollTop - placed) > 4) following = false;
    },
    true,
  );

  async function copy(button) {
    try {
      await navigator.clipboard.writeText(button.value);
    } catch {
      // Without https or on a refusal there is still the old way.
      const area = document.createElement("textarea");
      area.value = button.value;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  }

  function tellFold() {
    const fold = document.querySelector("#aq-filters > button");
    fold?.setAttribute("aria-expanded", fold.classList.contains("open"));
    fold?.querySelector(".icon")?.setAttribute("aria-hidden", "true");
  }

  document.addEventListener(
    "click",
    (event) => {
      const at = event.target instanceof Element ? event.target : null;
      const link = at?.closest("a.aq-marker, a.aq-back");
      const button = at?.closest("button.aq-copy");
      if (at?.closest("#aq-ask button.primary, #aq-talk .examples")) following = true;
      if (at?.closest("#aq-filters > button")) setTimeout(tellFold);
      if (!link && !button) return;
      event.preventDefault();
      event.stopPropagation();
      if (link) openBehind(link);
      else copy(button);
    },
    true,
  );

  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      const box = event.target instanceof Element ? event.target : null;
      const question = document.querySelector("#aq-ask textarea");
      const answering = document.querySelector("#aq-ask button.stop");
      if (!question || !box?.matches("#aq-ask textarea, #aq-filters input")) return;
      if (question.value.trim() && !answering) {
        following = true;
        return;
      }
      question.focus();
      event.preventDefault();
      event.stopPropagation();
    },
    true,
  );

  const labelled = "#aq-talk [data-testid=user][aria-label], #aq-talk [data-testid=bot][aria-label]";
  new MutationObserver(() => {
    for (const message of document.querySelectorAll(labelled)) message.removeAttribute("aria-label");
    tellFold();
    follow();
  }).observe(document, { subtree: true, childList: true, attributeFilter: ["aria-label"] });
})();
