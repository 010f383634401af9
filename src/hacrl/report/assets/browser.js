"use strict";
// Shows sampled rollouts. What models wrote only ever becomes text, never markup.
(function () {
  function make(parent, tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    if (parent) parent.appendChild(element);
    return element;
  }

  function number(value, digits) {
    return value === null ? "–" : value.toFixed(digits);
  }

  function choice(parent, name, className) {
    const label = make(parent, "label", className, name);
    return make(label, "select");
  }

  function fill(select, texts) {
    select.replaceChildren();
    texts.forEach(function (text, i) {
      make(select, "option", "", text).value = String(i);
    });
  }

  function lessons(parent, list) {
    if (!list.length) {
      make(parent, "p", "label", "no agent learned from it");
      return;
    }
    const table = make(parent, "table");
    const head = make(make(table, "thead"), "tr");
    ["learner", "advantage", "ratio", "clip", ""].forEach(function (name) {
      make(head, "th", "", name);
    });
    const body = make(table, "tbody");
    list.forEach(function (lesson) {
      const row = make(body, "tr");
      make(row, "td", "", lesson.learner);
      make(row, "td", "", number(lesson.advantage, 2));
      make(row, "td", "", number(lesson.ratio, 3));
      make(row, "td", "", lesson.clip === null ? "–" : lesson.clip);
      make(row, "td", lesson.taught ? "taught" : "", lesson.fate);
    });
  }

  function answer(parent, one) {
    const kind = one.outcome === "right" ? " right" : one.outcome === "wrong" ? " wrong" : "";
    const card = make(parent, "article", "answer" + kind);
    const head = make(card, "div", "head");
    make(head, "span", "", one.agent + " #" + one.sample);
    make(head, "span", "", one.outcome + " · reward " + number(one.reward, 2));
    make(card, "div", "text", one.text === "" ? "(empty)" : one.text);
    const taken = one.answer === null ? "no answer found" : "read as: " + one.answer;
    const end = one.finished ? "" : ", cut at the length limit";
    make(card, "p", "label", taken + " · " + one.tokens + " tokens" + end);
    lessons(card, one.lessons);
  }

  function browser(root) {
    const steps = JSON.parse(document.getElementById(root.dataset.rollouts).textContent);
    const controls = make(root, "div", "controls");
    const step = choice(controls, "step");
    const prompt = choice(controls, "prompt", "prompt");
    const agent = choice(controls, "agent");
    const back = make(controls, "button", "", "← back");
    const next = make(controls, "button", "", "next →");
    const place = make(root, "div");
    const agents = root.dataset.agents.split(" ");
    fill(step, steps.map(function (one) { return String(one.step); }));
    fill(agent, ["all"].concat(agents));

    function show() {
      const one = steps[step.value].prompts[prompt.value];
      place.replaceChildren();
      const question = make(place, "div", "question");
      make(question, "p", "label", "prompt " + one.id);
      make(question, "div", "text", one.text);
      make(question, "p", "label", "reference answer");
      make(question, "div", "text", one.gold);
      const answers = make(place, "div", "answers");
      const wanted = agent.value === "0" ? null : agents[Number(agent.value) - 1];
      one.answers.forEach(function (each) {
        if (wanted === null || each.agent === wanted) answer(answers, each);
      });
    }

    function changeStep(last) {
      const prompts = steps[step.value].prompts;
      fill(prompt, prompts.map(function (one, i) {
        const text = one.text.replace(/\s+/g, " ");
        return i + 1 + "/" + prompts.length + ": " + (text.length > 60 ? text.slice(0, 60) + "…" : text);
      }));
      if (last) prompt.value = String(prompts.length - 1);
      show();
    }

    function move(by) {
      const count = steps[step.value].prompts.length;
      const wanted = Number(prompt.value) + by;
      if (wanted >= 0 && wanted < count) {
        prompt.value = String(wanted);
        show();
      } else if (steps[Number(step.value) + by]) {
        step.value = String(Number(step.value) + by);
        changeStep(by < 0);
      }
    }

    step.addEventListener("change", function () { changeStep(false); });
    prompt.addEventListener("change", show);
    agent.addEventListener("change", show);
    back.addEventListener("click", function () { move(-1); });
    next.addEventListener("click", function () { move(1); });
    changeStep(false);
    root.hidden = false;
  }

  document.querySelectorAll(".browser").forEach(browser);
})();
