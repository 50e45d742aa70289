"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { items, strings, grid, prior, needed, guarantee } = data;
  const SVG = "http://www.w3.org/2000/svg";
  const RIGHT = 1, WRONG = 0, NOT_ANSWERED = -1;
  // As in understudy/exams/posterior.py: an answer stands out when it had less than this chance.
  const SURPRISING = 0.2;

  /* ---- The computation: the sums of understudy/exams/posterior.py over the same grid. ---- */

  const logChance = (logit) => (logit >= 0 ? -Math.log1p(Math.exp(-logit)) : logit - Math.log1p(Math.exp(logit)));

  const step = (grid.high - grid.low) / (grid.n_points - 1);
  const points = Float64Array.from({ length: grid.n_points }, (_, j) => grid.low + step * j);
  // The chance of each number of steps of an item with points, averaged over what its difficulty may be.
  const pointTable = ({ difficulty, standard_error, discrimination, credits, guess }) => {
    const chances = credits.map(() => new Float64Array(points.length));
    const logs = new Float64Array(credits.length);
    points.forEach((b, j) => {
      for (const [doubt, weight] of data.doubts) {
        const beyond = discrimination * (b - difficulty - (standard_error ?? 0) * doubt);
        for (let k = 0; k < logs.length; k++) logs[k] = k * beyond + credits[k];
        const top = logs.reduce((a, c) => Math.max(a, c));
        const total = logs.reduce((sum, log) => sum + Math.exp(log - top), 0);
        for (let k = 0; k < logs.length; k++) chances[k][j] += (weight * Math.exp(logs[k] - top)) / total;
      }
      if (guess) {
        chances[0][j] *= 1 - guess;
        chances[1][j] = 1 - chances[0][j];
      }
    });
    const most = credits.length - 1;
    const share = points.map((_, j) => chances.reduce((sum, chance, k) => sum + (k * chance[j]) / most, 0));
    return { logs: chances.map((chance) => chance.map(Math.log)), chances, right: share };
  };
  const tables = items.map((item) => {
    if (item.credits) return pointTable(item);
    const logits = points.map((b) => (b - item.difficulty) * item.slope);
    const known = logits.map(logChance);
    const { guess } = item;
    const logRight = guess ? known.map((log) => Math.log(guess + (1 - guess) * Math.exp(log))) : known;
    const logWrong = logits.map((logit) => Math.log1p(-guess) + logChance(-logit));
    const chances = [logWrong.map(Math.exp), logRight.map(Math.exp)];
    return { logs: [logWrong, logRight], chances, right: chances[1] };
  });
  const logPrior = points.map((b) => -0.5 * ((b - prior.mean) / prior.sd) ** 2);

  // The chance of passing at each ability: the law of the sum of all steps, item by item.
  const mostSteps = tables.map((table) => table.logs.length - 1);
  const passingAt = points.map((_, j) => {
    let exactly = Float64Array.of(1);
    tables.forEach((table, i) => {
      const each = items[i].multiple;
      const longer = new Float64Array(exactly.length + each * mostSteps[i]);
      for (let k = 0; k <= mostSteps[i]; k++)
        for (let m = 0; m < exactly.length; m++) longer[m + each * k] += exactly[m] * table.chances[k][j];
      exactly = longer;
    });
    return exactly.subarray(needed).reduce((sum, value) => sum + value, 0);
  });

  function judge(answers) {
    const weight = Float64Array.from(logPrior);
    answers.forEach((answer, i) => {
      if (answer === NOT_ANSWERED) return;
      const log = tables[i].logs[answer];
      for (let j = 0; j < weight.length; j++) weight[j] += log[j];
    });
    const top = weight.reduce((a, b) => Math.max(a, b));
    let total = 0;
    for (let j = 0; j < weight.length; j++) total += weight[j] = Math.exp(weight[j] - top);
    for (let j = 0; j < weight.length; j++) weight[j] /= total;
    const mean = (value) => {
      let sum = 0;
      for (let j = 0; j < weight.length; j++) sum += weight[j] * value(j);
      return sum;
    };
    const ability = mean((j) => points[j]);
    const chances = tables.map((table) => mean((j) => table.right[j]));
    // Dividing by the likelihood of an answer takes it out of the posterior.
    const withoutOwn = (i, value) =>
      mean((j) => value[j] * Math.exp(-tables[i].logs[answers[i]][j])) /
      mean((j) => Math.exp(-tables[i].logs[answers[i]][j]));
    const byOthers = answers.map((answer, i) =>
      answer === NOT_ANSWERED ? chances[i] : withoutOwn(i, tables[i].right));
    // How likely so few, or so many, steps were.
    const among = (i, from, to) =>
      tables[i].chances.slice(from, to).reduce((sum, chance) => sum + withoutOwn(i, chance), 0);
    const [low, high] = limits(weight);
    return {
      ability,
      sd: Math.sqrt(mean((j) => (points[j] - ability) ** 2)),
      low,
      high,
      passing: mean((j) => passingAt[j]),
      chances,
      by_others: byOthers,
      should_have: answers.map(
        (answer, i) => answer !== NOT_ANSWERED && answer < mostSteps[i] && among(i, 0, answer + 1) < SURPRISING),
      surprising: answers.map((answer, i) => answer > 0 && among(i, answer) < SURPRISING),
    };
  }

  function limits(weight) {
    const below = new Float64Array(weight.length);
    for (let j = 1; j < weight.length; j++) below[j] = below[j - 1] + (weight[j] + weight[j - 1]) / 2;
    const all = below[below.length - 1];
    return [0.025, 0.975].map((share) => {
      let j = 1;
      while (j < below.length - 1 && below[j] / all < share) j++;
      const [before, after] = [below[j - 1] / all, below[j] / all];
      return points[j - 1] + (step * (share - before)) / (after - before);
    });
  }

  /* ---- Words: every text comes from the strings, numbers as the language writes them. ---- */

  const fill = (text, values) =>
    text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
  function formatter(options) {
    try {
      return new Intl.NumberFormat(strings.lang, options);
    } catch {
      return new Intl.NumberFormat("en", options);
    }
  }
  const onScale = formatter({ minimumFractionDigits: 1, maximumFractionDigits: 1, signDisplay: "exceptZero" });
  const inPercent = formatter({ style: "percent", maximumFractionDigits: 0 });
  const inPercentExactly = formatter({ style: "percent", maximumFractionDigits: 1 });
  const plainNumber = formatter({ maximumFractionDigits: 4 });
  const plain = formatter({ maximumSignificantDigits: 3 });
  const counted = formatter({ maximumFractionDigits: 0 });
  // A minus sign, not a hyphen; and no zero with a sign.
  const place = (value) => onScale.format(Math.abs(value) < 0.05 ? 0 : value).replace("-", "−");
  function percent(share) {
    if (share < 0.01) return fill(strings.below_one, { percent: inPercent.format(0.01) });
    if (share > 0.99) return fill(strings.above_99, { percent: inPercent.format(0.99) });
    return inPercent.format(share);
  }
  const inPoints = formatter({ maximumFractionDigits: 1 });
  const pointsOf = (item, share) =>
    fill(strings.points_of, { n: inPoints.format(share * item.maximum), total: inPoints.format(item.maximum) });
  function reading({ credits, maximum, chance }) {
    if (credits && maximum !== 1)
      return fill(
        strings.reading_points, { n: inPoints.format(chance * maximum), total: inPoints.format(maximum) });
    const n = Math.round(10 * chance);
    if (n === 0) return strings.reading_none;
    if (n === 1) return strings.reading_one;
    return n === 10 ? strings.reading_all : fill(strings.reading_some, { n });
  }

  /* ---- The page. Texts are set as text, never as markup. ---- */

  const byId = (id) => document.getElementById(id);
  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }
  function shape(tag, attributes = {}, text = "") {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text) made.textContent = text;
    return made;
  }

  const CHOICES = [
    { value: RIGHT, text: strings.right, mark: "✓", kind: "right" },
    { value: WRONG, text: strings.wrong, mark: "✗", kind: "wrong" },
  ];
  // Where blanks count as wrong every task was asked of everybody.
  if (!data.blanks_are_wrong)
    CHOICES.push({ value: NOT_ANSWERED, text: strings.not_answered, mark: "–", kind: "none" });

  const tasks = items.map((item, i) => {
    const next = element("p", { class: "next", id: `next-${i}`, hidden: "" });
    const flag = element("p", { class: "flag", hidden: "" });
    if (mostSteps[i] > 1) return pointsTask(item, i, next, flag);
    const choices = CHOICES.map(({ value, text, mark, kind }) => {
      const input = element("input", { type: "radio", name: `task-${i}`, value: String(value) });
      const face = element(
        "span", { class: "face" }, element("span", { class: "mark", "aria-hidden": "true" }, mark), ` ${text}`);
      return { input, label: element("label", { class: `choice ${kind}` }, input, face) };
    });
    const labels = choices.map((choice) => choice.label);
    const field = taskField(item, i, next, element("div", { class: "choices" }, ...labels), flag);
    const inputs = choices.map((choice) => choice.input);
    const set = (value) => inputs.forEach((input) => (input.checked = Number(input.value) === value));
    const entry = () => inputs.find((input) => input.checked)?.value ?? "";
    return { field, next, flag, set, entry };
  });
  function taskField(item, i, next, entries, flag) {
    const field = element(
      "fieldset",
      { class: "task", "aria-describedby": `reading-${i} next-${i}` },
      element("legend", {}, item.name),
      element("p", { class: "reading", id: `reading-${i}` }, reading(item)),
      next,
      entries,
      flag,
    );
    byId("tasks").append(field);
    return field;
  }
  // A task with points has a list of them: one entry per step.
  function pointsTask(item, i, next, flag) {
    const option = (value, text) => element("option", { value }, text);
    const steps = Array.from({ length: mostSteps[i] + 1 }, (_, k) =>
      option(String(k), pointsOf(item, k / mostSteps[i])));
    const list = element(
      "select", { class: "points", name: `task-${i}`, "aria-label": fill(strings.points_label, { item: item.name }) },
      option("", "–"), ...steps);
    if (!data.blanks_are_wrong) list.append(option(String(NOT_ANSWERED), strings.not_answered));
    const field = taskField(item, i, next, list, flag);
    const set = (value) => (list.value = value === null ? "" : String(value));
    return { field, next, flag, set, entry: () => list.value };
  }
  // A task that is not entered yet is null: no verdict is given before every task is entered.
  const entriesNow = () => tasks.map((task) => (task.entry() === "" ? null : Number(task.entry())));

  // From the easiest step on; within a step by the released difficulty, whose order is not told.
  const position = new Map(items.map((item, i) => [item.name, i]));
  const ladder = data.steps
    .map((names) => names.filter((name) => position.has(name)).map((name) => position.get(name)))
    .map((group) => group.sort((a, b) => items[a].difficulty - items[b].difficulty))
    .filter((group) => group.length);

  function mark(answer, x, y, most = RIGHT) {
    if (answer > 0 && answer < most) {
      const half = shape("g");
      half.append(
        shape("circle", { class: "mark-none", cx: x, cy: y, r: 5.5 }),
        shape("path", { class: "mark-right", d: `M${x} ${y - 6}a6 6 0 0 0 0 12z` }));
      return half;
    }
    if (answer === most) return shape("circle", { class: "mark-right", cx: x, cy: y, r: 6 });
    if (answer === NOT_ANSWERED) return shape("circle", { class: "mark-none", cx: x, cy: y, r: 4.5 });
    return shape("path", { class: "mark-wrong", d: `M${x - 5} ${y - 5}l10 10m0 -10l-10 10` });
  }

  function shorten(text, width) {
    const letters = [...text.textContent];
    const long = text.getComputedTextLength();
    if (long <= width) return;
    // A proportional first guess, then letter by letter.
    let kept = Math.min(letters.length, Math.ceil((letters.length * width) / long) + 1);
    do {
      kept -= 1;
      text.textContent = `${letters.slice(0, kept).join("").trimEnd()}…`;
    } while (kept > 1 && text.getComputedTextLength() > width);
  }

  // Above the first step there is room for the mark of the student, once there is one. Bars that reach further BEYOND
  // the marks, in log-odds, are cut, and an arrow says so: others would have no room.
  const ROW = 28, GAP = 8, ABOVE = 46, BARE = 4, BOTTOM = 30, INSET = 10, BEYOND = 1.5;

  function drawLadder(answers, found, complete) {
    const holder = byId("ladder");
    const width = Math.max(240, Math.floor(holder.clientWidth));
    const top = complete ? ABOVE : BARE;
    const height = top + ladder.length * (INSET + GAP) - GAP + items.length * ROW + BOTTOM;
    const labels = Math.min(190, Math.floor(0.34 * width));
    const [left, right] = [labels + 18, width - 16];
    const ends = [...items.map((item) => item.difficulty), ...(complete ? [found.low, found.high] : [])];
    const bars = items.map((item) => [-1.96, 1.96].map((way) => item.difficulty + way * (item.standard_error ?? 0)));
    const [near, far] = [Math.min(...ends) - 0.4, Math.max(...ends) + 0.4];
    const least = Math.max(Math.min(near, ...bars.map((bar) => bar[0])), near - BEYOND);
    const most = Math.min(Math.max(far, ...bars.map((bar) => bar[1])), far + BEYOND);
    const x = (value) => left + ((Math.min(Math.max(value, least), most) - least) / (most - least)) * (right - left);
    const easier = items.filter((item) => item.difficulty < found.ability).length;
    const words = {
      ability: place(found.ability), low: place(found.low), high: place(found.high),
      easier, harder: items.length - easier, total: items.length,
    };
    const picture = shape("svg", {
      width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": fill(complete ? strings.ladder_label : strings.ladder_tasks, words),
    });
    holder.replaceChildren(picture);
    const boxes = shape("g"), rows = shape("g");
    const [from, to] = [top, height - BOTTOM];
    picture.append(boxes);
    if (complete) {
      const middle = Math.min(Math.max(x(found.ability), left + 20), right - 30);
      picture.append(
        shape("rect", { class: "band", x: x(found.low), y: from - 8, width: x(found.high) - x(found.low), height: to - from + 16 }),
        shape("line", { class: "you", x1: x(found.ability), x2: x(found.ability), y1: from - 14, y2: to + 8 }),
        shape("text", { class: "you-label", x: middle, y: from - 22, "text-anchor": "middle" }, strings.you),
      );
    }
    picture.append(
      rows,
      shape("text", { class: "end", x: left, y: height - 6 }, `← ${strings.easy}`),
      shape("text", { class: "end", x: right, y: height - 6, "text-anchor": "end" }, `${strings.hard} →`),
    );
    let y = top;
    for (const group of ladder) {
      const tall = group.length * ROW + INSET;
      if (group.length > 1)
        boxes.append(shape("rect", { class: "step", x: 0.5, y, width: width - 1, height: tall, rx: 6 }));
      group.forEach((i, k) => {
        const item = items[i];
        const at = y + INSET / 2 + (k + 0.5) * ROW;
        const label = shape("text", { class: "name", x: 10, y: at + 5 }, item.name);
        const [low, high] = bars[i];
        rows.append(label);
        if (low < high) rows.append(shape("line", { class: "error", x1: x(low), x2: x(high), y1: at, y2: at }));
        if (low < least) rows.append(shape("path", { class: "cut", d: `M${left - 6} ${at}l8 -4.5v9z` }));
        if (high > most) rows.append(shape("path", { class: "cut", d: `M${right + 6} ${at}l-8 -4.5v9z` }));
        rows.append(mark(answers[i], x(item.difficulty), at, mostSteps[i]));
        shorten(label, labels - 6);
      });
      y += tall + GAP;
    }
    byId("ladder-summary").textContent = fill(strings.ladder_summary, words);
  }

  function drawMeter(share) {
    const bar = shape("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", width: "100%", height: 10 });
    bar.append(
      shape("rect", { class: "track", x: 0, y: 0, width: 100, height: 8 }),
      shape("rect", { class: "fill", x: 0, y: 0, width: 100 * share, height: 8 }),
    );
    byId("meter").replaceChildren(bar);
  }

  const standsOut = (i, sentence, share) =>
    mostSteps[i] > 1
      ? fill(strings.stands_out_points, { points: pointsOf(items[i], share) })
      : fill(sentence, { chance: percent(share) });

  function showStandOut(found) {
    const lists = [
      ["should_have", found.should_have, strings.should_have, strings.should_have_item],
      ["surprising", found.surprising, strings.surprising, strings.surprising_item],
    ].filter(([, flags]) => flags.some(Boolean));
    const blocks = lists.map(([kind, flags, heading, sentence]) =>
      element(
        "div",
        { class: `outstanding ${kind}` },
        element("h3", {}, heading),
        element(
          "ul",
          {},
          ...items.flatMap((item, i) =>
            flags[i]
              ? [element("li", {}, element("strong", {}, item.name), " ",
                  element("span", {}, standsOut(i, sentence, found.by_others[i])))]
              : []),
        ),
      ));
    if (!blocks.length) blocks.push(element("p", {}, strings.nothing_stands_out));
    byId("stand-out").replaceChildren(...blocks);
  }

  let saying = 0;
  let shown = null;

  function update() {
    const entries = entriesNow();
    const answers = entries.map((entry) => entry ?? NOT_ANSWERED);
    const found = judge(answers);
    const entered = entries.filter((entry) => entry !== null).length;
    // Somebody who enters only what was right would be told too much; and without any answer there is nothing to tell.
    const complete = entered === items.length && answers.some((answer) => answer !== NOT_ANSWERED);
    const words = {
      ability: place(found.ability), low: place(found.low), high: place(found.high), passing: percent(found.passing),
    };
    const progress = fill(strings.entered, { n: entered, total: items.length });
    shown = { answers, found, complete };
    byId("entered").textContent = progress;
    byId("empty").hidden = complete || (entered > 0 && entered < items.length);
    byId("missing").hidden = entered === 0 || entered === items.length;
    byId("missing-text").textContent = fill(
      data.points ? strings.result_missing_points : strings.result_missing, { n: items.length - entered, total: items.length });
    for (const id of ["figures", "outstanding", "ladder-line", "ladder-summary"]) byId(id).hidden = !complete;
    // The last one explains the line.
    byId("legend").lastElementChild.hidden = !complete;
    byId("passing").textContent = complete ? words.passing : "";
    byId("ability").textContent = complete ? words.ability : "";
    byId("interval").textContent = fill(strings.ability_interval, words);
    byId("ability-meaning").textContent = fill(data.points ? strings.ability_points : strings.ability_meaning, words);
    byId("bar-text").textContent = complete ? fill(strings.bar, words) : progress;
    tasks.forEach((task, i) => {
      // Empty until then, as it describes the task to a screen reader.
      task.next.hidden = !complete;
      task.next.replaceChildren(
        ...(complete ? [`${strings.next_time} `, element(
              "strong", {}, mostSteps[i] > 1 ? pointsOf(items[i], found.chances[i]) : percent(found.chances[i]))] : []));
      const kind = !complete ? "" : found.should_have[i] ? "should_have" : found.surprising[i] ? "surprising" : "";
      task.flag.hidden = !kind;
      task.flag.className = `flag ${kind}`;
      task.flag.textContent = kind ? strings[kind] : "";
      task.field.classList.toggle("open", entries[i] === null);
    });
    drawMeter(found.passing);
    showStandOut(found);
    drawLadder(answers, found, complete);
    // For the tests: a property of the object, so that a copy of the page does not hold it.
    byId("spoken").figures = { ...found, answers, complete };
    // Said once the student pauses: not every keystroke wants a sentence.
    clearTimeout(saying);
    saying = setTimeout(() => {
      byId("spoken").textContent = complete ? fill(strings.spoken, words) : entered ? progress : "";
    }, 700);
  }

  function explainGuarantee() {
    const paragraphs = [];
    let exact = null;
    if (guarantee.formal) {
      paragraphs.push(strings.blurred);
      const factor = Math.exp(guarantee.epsilon);
      const words = {
        epsilon: plain.format(guarantee.epsilon),
        // Rounded up: it is what the chance is at most.
        factor: factor < 10 ? plain.format(Math.ceil(10 * factor) / 10) : counted.format(Math.ceil(factor)),
        n: guarantee.delta ? counted.format(Math.floor(1 / guarantee.delta)) : "",
      };
      const large = guarantee.epsilon > 5;
      // A factor in the thousands would say nothing.
      if (large) paragraphs.push(fill(guarantee.epsilon > 14 ? strings.epsilon_huge : strings.epsilon_weak, words));
      // The sentence speaks of a student with all their answers; another unit has its statement only.
      else if (guarantee.usual) paragraphs.push(fill(guarantee.delta ? strings.epsilon_delta : strings.epsilon, words));
      exact = element(
        "details",
        // Open where no plainer sentence says what is guaranteed.
        guarantee.usual || large ? {} : { open: "" },
        element("summary", {}, strings.exact_statement),
        element("p", {}, fill(strings.statement, { statement: guarantee.statement })),
      );
    } else {
      paragraphs.push(strings.no_guarantee);
      if (guarantee.reason) paragraphs.push(fill(strings.no_guarantee_reason, { reason: guarantee.reason }));
    }
    byId("guarantee").append(...paragraphs.map((text) => element("p", {}, text)), ...(exact ? [exact] : []));
  }

  function explainMarks() {
    const small = (...shapes) => {
      const picture = shape("svg", { width: 28, height: 20, "aria-hidden": "true" });
      picture.append(...shapes);
      return picture;
    };
    const lines = [
      [small(mark(RIGHT, 14, 10)), strings.legend_right],
      ...(data.points ? [[small(mark(1, 14, 10, 2)), strings.legend_points]] : []),
      [small(mark(WRONG, 14, 10)), strings.legend_wrong],
      [small(mark(NOT_ANSWERED, 14, 10)), strings.legend_none],
      [small(shape("line", { class: "error", x1: 2, x2: 26, y1: 10, y2: 10 })), strings.legend_error],
      [small(shape("rect", { class: "band", x: 3, y: 1, width: 22, height: 18 }),
        shape("line", { class: "you", x1: 14, x2: 14, y1: 1, y2: 19 })), strings.legend_band],
    ];
    byId("legend").append(...lines.map(([picture, text]) => element("li", {}, picture, element("span", {}, text))));
    byId("ladder-steps").hidden = !ladder.some((group) => group.length > 1);
  }

  function setAll(value, among = tasks) {
    for (const task of among) task.set(value === RIGHT ? mostSteps[tasks.indexOf(task)] : value);
    update();
  }
  const notEntered = () => tasks.filter((task) => task.entry() === "");

  const ofAll = data.points
    ? { needed: plainNumber.format(data.points.needed), total: plainNumber.format(data.points.total) }
    : { needed, total: items.length };
  byId("passing-meaning").textContent = fill(data.points ? strings.passing_points : strings.passing_meaning, ofAll);
  if (data.points) byId("ladder-line").textContent = strings.ladder_points;
  if (data.right_from !== null) {
    const { share, at_most, at_least } = data.right_from;
    let words = fill(strings.right_means, { share: inPercentExactly.format(share) });
    if (at_most !== undefined) words = fill(strings.right_means_at_most, { number: plainNumber.format(at_most) });
    if (at_least !== undefined) words = fill(strings.right_means_at_least, { number: plainNumber.format(at_least) });
    byId("right-means").textContent = words;
    byId("right-means").hidden = false;
  }
  if (data.left_out.length) {
    byId("left-out").textContent = fill(strings.left_out, { items: data.left_out.join(", ") });
    byId("left-out").hidden = false;
  }
  explainGuarantee();
  explainMarks();
  byId("answers").addEventListener("change", update);
  byId("answers").addEventListener("submit", (event) => event.preventDefault());
  byId("all-right").addEventListener("click", () => setAll(RIGHT));
  byId("clear").addEventListener("click", () => setAll(null));
  for (const button of document.querySelectorAll(".rest-wrong"))
    button.addEventListener("click", () => setAll(WRONG, notEntered()));

  // The letters of the picture keep their size: it is drawn again when the width changes.
  let width = 0;
  new ResizeObserver(() => {
    if (shown && byId("ladder").clientWidth !== width) drawLadder(shown.answers, shown.found, shown.complete);
    width = byId("ladder").clientWidth;
  }).observe(byId("ladder"));
  // A line at the foot of the screen while the result is out of sight.
  new IntersectionObserver(([entry]) => {
    byId("bar").hidden = entry.isIntersecting;
  }).observe(byId("summary"));

  update();
})();
