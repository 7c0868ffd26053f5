// What a reader would stumble over: called in the page with the width of the window, gives a list of complaints. All text
// counts that is shown, in SVG too.
(windowWidth) => {
  const LEAST_FONT_PX = 11, LEAST_CONTRAST = 4.5;
  const complaints = [];
  const page = document.documentElement;
  // A phone's browser zooms out where the page is too wide, and tells a larger inner width then.
  const width = Math.max(page.scrollWidth, window.innerWidth);
  if (width > windowWidth) complaints.push(`the page is ${width} px wide in a window of ${windowWidth}`);

  // Colours as [red, green, blue, alpha], 0 to 1.
  function parsed(color) {
    const numbers = (color.match(/-?[\d.]+(e-?\d+)?/g) || []).map(Number);
    if (color.startsWith("color(srgb")) return [...numbers.slice(0, 3), numbers.length > 3 ? numbers[3] : 1];
    return [numbers[0] / 255, numbers[1] / 255, numbers[2] / 255, numbers.length > 3 ? numbers[3] : 1];
  }
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  function luminance(color) {
    const [r, g, b] = color.map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  function contrast(a, b) {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  }
  // Every colour that may lie behind an element: one, or several where there is a gradient.
  function backgrounds(element) {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.unshift(getComputedStyle(e));
    let colors = [[1, 1, 1, 1]];
    for (const style of layers) {
      const stops = style.backgroundImage.match(/(rgba?|color)\([^()]*\)/g) || [];
      const own = [style.backgroundColor, ...stops].map(parsed);
      const base = colors.map((color) => over(own[0], color));
      colors = base.concat(...own.slice(1).map((stop) => base.map((color) => over(stop, color))));
    }
    return colors;
  }
  function opacity(element) {
    let share = 1;
    for (let e = element; e; e = e.parentElement) share *= Number(getComputedStyle(e).opacity);
    return share;
  }
  // The part of a box that is seen inside scrolling boxes, or null.
  function seen(box, element) {
    let { left, right, top, bottom } = box;
    for (let e = element; e; e = e.parentElement) {
      if (getComputedStyle(e).overflowX === "visible") continue;
      const frame = e.getBoundingClientRect();
      [left, right] = [Math.max(left, frame.left), Math.min(right, frame.right)];
      [top, bottom] = [Math.max(top, frame.top), Math.min(bottom, frame.bottom)];
    }
    return right - left > 0.5 && bottom - top > 0.5 ? { left, right, top, bottom } : null;
  }

  const texts = [];
  const looked = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const text = node.data.trim();
    if (!text || ["SCRIPT", "STYLE", "title"].includes(element.tagName)) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const svg = element.closest("svg");
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (svg && getComputedStyle(svg).display === "none") continue;
      if (svg) {
        const frame = svg.getBoundingClientRect();
        if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) {
          complaints.push(`'${text}' is cut off at the edge of its picture`);
        }
      }
      const part = seen(box, element);
      if (part) texts.push({ text, ...part });
    }
    if (looked.has(element)) continue;
    looked.set(element, true);
    const style = getComputedStyle(element);
    const scale = svg && element.getScreenCTM ? element.getScreenCTM().a : 1;
    const size = parseFloat(style.fontSize) * scale;
    if (size < LEAST_FONT_PX - 0.05) complaints.push(`'${text}' is ${size.toFixed(1)} px high`);
    const ink = parsed(svg && element instanceof SVGElement ? style.fill : style.color);
    ink[3] *= opacity(element);
    for (const below of backgrounds(element)) {
      const ratio = contrast(over(ink, below), below);
      if (ratio < LEAST_CONTRAST) complaints.push(`'${text}' has a contrast of ${ratio.toFixed(2)} only`);
    }
  }

  const SLACK_PX = 1;  // boxes of letters are larger than their ink
  texts.sort((a, b) => a.top - b.top);
  for (let i = 0; i < texts.length; i++) {
    for (let j = i + 1; j < texts.length && texts[j].top < texts[i].bottom - SLACK_PX; j++) {
      const [a, b] = [texts[i], texts[j]];
      if (a.left < b.right - SLACK_PX && b.left < a.right - SLACK_PX) {
        complaints.push(`'${a.text}' and '${b.text}' lie over each other`);
      }
    }
  }
  return { complaints: [...new Set(complaints)], numTexts: texts.length };
}
