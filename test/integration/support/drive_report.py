#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
drive_report.py CHECK[,CHECK...] REPORT.html [ARGUMENT]: opens leakparse's HTML report in headless Chromium,
anew for each check, and uses it as people do. Reports are of test/targets/leak_kinds but for `open`, `distinct` and `clean`. Fails with what it saw.

  open SECONDS   opens within that time, or as much more as the machine is slower, and prints it
  load, search, flame, points, range, table, hostile, theme, print, offline
  distinct       a report of stacks that look alike in the table
  hover          a report of a million blocks; prints what the pointer takes
  only_leaky     a report of one stack; before_burst: of an early moment
  clean          a report of a program that leaks nothing
  pictures DIR   writes screenshots, light and dark
"""
import json
import sys

from browser import Browser

LEAKY = "open_session"  # its blocks are all of one size, and many
# Work that takes a page REFERENCE_S on the machine for which the limits of `open` are meant.
REFERENCE_WORK = """(() => {
    const start = performance.now(), words = [], count = new Map();
    for (let i = 0; i < 300000; i++)
        words.push('f' + (i * 7919 % 300007));
    for (const word of JSON.parse(JSON.stringify(words)).sort())
        count.set(word.slice(0, 4), (count.get(word.slice(0, 4)) ?? 0) + 1);
    return (performance.now() - start) / 1000; })()"""
REFERENCE_S = 0.23
HOSTILE = "</script><script>document.title=1</script>"


def expect(what, seen, wanted):
    if seen != wanted:
        raise AssertionError(f"{what}: {seen!r}, but it should be {wanted!r}")


def expect_in(what, wanted, seen):
    if wanted not in (seen or ""):
        raise AssertionError(f"{what}: {seen!r} does not have {wanted!r}")


def text(browser, selector):
    return browser.evaluate(f"document.querySelector({selector!r})?.textContent")


def nr_rows(browser):
    return int(browser.evaluate("document.querySelector('#table').getAttribute('aria-rowcount')"))


def focus(browser, selector):
    browser.evaluate(f"document.querySelector({selector!r}).focus()")


def back_to_all(browser, rows):
    for _ in range(20):
        if not text(browser, "#filters"):
            break
        browser.key("Escape")
    expect("filters after Escape", text(browser, "#filters"), "")
    expect("rows after Escape", nr_rows(browser), rows)


def check_load(browser):
    expect_in("the title", "held", browser.evaluate("document.title"))
    expect_in("the tiles", "Probably leaked", text(browser, "#tiles"))
    for verdict in ("growth", "burst", "plateau", "start-up"):
        expect_in("the verdicts", verdict, text(browser, "#verdicts"))
    expect_in("the first stack", LEAKY, text(browser, ".row[data-index='0']"))
    expect_in("its frames", "accept_client", text(browser, "#detail .frames"))
    for canvas in ("#flame canvas", "#points canvas", "#held canvas"):
        colours = browser.evaluate(
            f"(() => {{ const c = document.querySelector({canvas!r}); const d = c.getContext('2d')"
            ".getImageData(0, 0, c.width, c.height).data; const s = new Set();"
            "for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);"
            "return s.size; })()")
        if colours < 8:
            raise AssertionError(f"{canvas} has {colours} colours: it is not drawn")


def search(browser, words):
    focus(browser, "#table-body")
    browser.key("/", "/")
    expect("where / leads", browser.evaluate("document.activeElement.id"), "search")
    browser.type(words)
    browser.painted()


def check_search(browser):
    rows = nr_rows(browser)
    search(browser, LEAKY.upper())
    browser.wait_for("document.querySelector('#table').getAttribute('aria-rowcount') === '1'")
    expect_in("the found stack", LEAKY, text(browser, ".row"))
    expect_in("the chip", "contains", text(browser, "#filters"))
    back_to_all(browser, rows)
    search(browser, "/^(open_|import_)/")
    browser.wait_for("document.querySelector('#table').getAttribute('aria-rowcount') === '2'")
    back_to_all(browser, rows)
    search(browser, "/(/")
    browser.wait_for("document.querySelector('#search').classList.contains('bad')")
    back_to_all(browser, rows)
    search(browser, "no such function")
    browser.wait_for("document.querySelector('#table').getAttribute('aria-rowcount') === '0'")
    expect_in("the empty table", "No stack", text(browser, "#table-room"))


def find(browser, view, name, step_x, step_y):
    """Points at what the view shows of a function. Moves come from within the page until it is found:
    those from outside wait for a frame each."""
    browser.place(f"{view} canvas")
    place = browser.evaluate(
        f"(() => {{ const canvas = document.querySelector('{view} canvas'), r = canvas.getBoundingClientRect();"
        f"const status = document.querySelector('{view}-status');"
        f"for (let y = r.y + {step_y} / 2; y < r.bottom; y += {step_y})"
        f"for (let x = r.x + {step_x} / 2; x < r.right; x += {step_x}) {{"
        "canvas.dispatchEvent(new MouseEvent('mousemove', { clientX: x, clientY: y, bubbles: true }));"
        f"if (status.textContent.startsWith({json.dumps(name + ' ')})) return [x, y]; }} }})()")
    if not place:
        raise AssertionError(f"{view} shows nothing of {name}")
    browser.mouse("mouseMoved", *place)
    expect("what the pointer is at", text(browser, f"{view}-status").startswith(name + " "), True)
    return place


def find_box(browser, name):
    return find(browser, "#flame", name, 20, 19)


def check_flame(browser):
    rows = nr_rows(browser)
    place = find_box(browser, "accept_client")
    expect_in("the tip", "accept_client", text(browser, "#tip"))
    expect_in("the tip", "%", text(browser, "#tip"))
    browser.click(*place)
    expect_in("the chip", "through accept_client", text(browser, "#filters"))
    expect("rows through it", nr_rows(browser), 1)
    back_to_all(browser, rows)
    # By the keyboard: all, _start, ... serve, its largest callee.
    focus(browser, "#flame canvas")
    browser.mouse("mouseMoved", 2, 2)
    for _ in range(20):
        browser.key("ArrowDown")
        if text(browser, "#flame-status").startswith("serve "):
            break
    browser.key("ArrowDown")
    browser.key("ArrowRight")
    status = text(browser, "#flame-status")
    browser.key("Enter")
    expect_in("the chip", "through " + status.split(" ")[0], text(browser, "#filters"))
    back_to_all(browser, rows)
    browser.evaluate("[...document.querySelectorAll('#flame-modes button')]"
                     ".find(b => b.textContent === 'all allocations').click()")
    find_box(browser, "render_page")


def find_point(browser, name):
    return find(browser, "#points", name, 10, 9)


def check_points(browser):
    rows = nr_rows(browser)
    place = find_point(browser, "import_record")
    expect_in("the tip", "import_catalogue", text(browser, "#tip"))
    expect_in("the tip", "burst", text(browser, "#tip"))
    browser.click(*place)
    expect_in("the chip", "stack: import_record", text(browser, "#filters"))
    expect_in("the selected row", "import_record", text(browser, ".row.selected"))
    expect_in("the stack", "import_catalogue", text(browser, "#detail .frames"))
    find_box(browser, "import_record")
    expect("what the pointer finds of others",
           text(browser, "#flame-status").startswith("import_record"), True)
    back_to_all(browser, rows)
    focus(browser, "#points canvas")
    browser.key("ArrowRight")
    browser.key("Enter")
    expect_in("the chip", "stack: ", text(browser, "#filters"))


def check_range(browser):
    rows = nr_rows(browser)
    x, y, width, height = browser.place("#points canvas")
    browser.drag(x + width * 0.8, y + height / 2, x + width * 0.95, y + height / 2)
    expect_in("the chip", "allocated", text(browser, "#filters"))
    shown = nr_rows(browser)
    if not 0 < shown < rows:
        raise AssertionError(f"{shown} of {rows} stacks in a part of the time")
    if "load_table" in text(browser, "#table-room"):
        raise AssertionError("the start is not in the range, but its stack is shown")
    x, y, width, height = browser.place("#held canvas")
    browser.mouse("mouseMoved", x + width / 2, y + height / 2)
    expect_in("what was held", "held, ", text(browser, "#held-status"))
    back_to_all(browser, rows)


def check_table(browser):
    rows = nr_rows(browser)
    focus(browser, "#table-body")
    browser.key("ArrowDown")
    name = text(browser, ".row.current .where b")
    expect_in("the stack beside", name, text(browser, "#detail h3"))
    browser.key("Enter")
    expect_in("the chip", "stack: " + name, text(browser, "#filters"))
    back_to_all(browser, rows)
    browser.evaluate("document.querySelectorAll('#table-head button')[2].click()")
    expect_in("the largest", "grow_pool", text(browser, ".row[data-index='0']"))
    browser.evaluate("document.querySelectorAll('#table-head button')[2].click()")
    expect("the order", browser.evaluate(
        "document.querySelectorAll('#table-head [aria-sort]')[2].getAttribute('aria-sort')"),
        "ascending")
    browser.evaluate("document.querySelector('#all').click()")
    if nr_rows(browser) <= rows:
        raise AssertionError("no stacks that hold nothing")
    browser.evaluate("document.querySelector('#all').click()")
    browser.evaluate("document.querySelector('[data-verdict]').click()")
    expect_in("the chip", "verdict: growth", text(browser, "#filters"))
    back_to_all(browser, rows)


def check_hostile(browser):
    rows = nr_rows(browser)
    title = browser.evaluate("document.title")
    search(browser, "/<script>/")
    browser.wait_for("document.querySelector('#table').getAttribute('aria-rowcount') === '1'")
    expect("the function's name", text(browser, ".row .where b"), HOSTILE)
    expect_in("its caller", "<img src=x onerror=", text(browser, "#detail .frames"))
    browser.evaluate("document.querySelector('#table-body .row').click()")
    find_box(browser, HOSTILE.split(" ", maxsplit=1)[0])
    expect("the tip's name", text(browser, "#tip b"), HOSTILE)
    expect("images", browser.evaluate("document.images.length"), 0)
    expect("scripts", browser.evaluate("document.scripts.length"), 2)
    expect("the title", browser.evaluate("document.title"), title)
    back_to_all(browser, rows)


def check_theme(browser):
    def brightness():
        colour = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour[4:-1].split(",")) / 3

    if brightness() < 200:
        raise AssertionError("not light")
    browser.set_dark(True)
    if brightness() > 60:
        raise AssertionError("not dark")
    browser.evaluate("document.querySelector('#theme').click()")
    if brightness() < 200:
        raise AssertionError("the button does not turn the light on")


def check_print(browser):
    browser.set_dark(True)
    browser.evaluate("addEventListener('beforeprint', () => window.printed ="
                     " document.querySelectorAll('#print article').length)")
    browser.print_pdf("report.pdf")
    expect("printed stacks", browser.evaluate("window.printed"), nr_rows(browser))
    expect("the theme behind", browser.evaluate("document.documentElement.dataset.theme"), "dark")


def check_distinct(browser):
    rows = browser.evaluate("[...document.querySelectorAll('.row .where')].map((e) => e.textContent)")
    expect("rows that look the same", [row for row in rows if rows.count(row) > 1], [])
    expect_in("the rows", "via ", " ".join(rows))


def check_offline(browser):
    """The policy refuses what the page does not do by itself."""
    refused = browser.evaluate(
        "new Promise(done => { addEventListener('securitypolicyviolation', e => done(e.effectiveDirective));"
        "fetch('http://127.0.0.1:9/').catch(() => 0); setTimeout(() => done('nothing'), 60000); })")
    expect("what the policy refuses", refused, "connect-src")
    ran = browser.evaluate(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        "document.body.append(s); return window.ran === 1; })()")
    expect("whether another script runs", ran, False)
    expect("requests", [r for r in browser.requests if not r.startswith("file:")], [])
    browser.errors.clear()  # these two


def check_clean(browser):
    expect_in("the table", "no leak", text(browser, "#table-room"))
    expect("rows", nr_rows(browser), 0)


def check_only_leaky(browser):
    expect("rows", nr_rows(browser), 1)
    expect_in("the only stack", LEAKY, text(browser, ".row"))
    expect_in("the filter", "filtered", text(browser, "#subtitle"))


def check_before_burst(browser):
    expect_in("the table", LEAKY, text(browser, "#table-room"))
    if "import_record" in text(browser, "#table-room"):
        raise AssertionError("the burst comes later, but is shown")


def check_open(browser, seconds, took):
    reference = sum(browser.evaluate(REFERENCE_WORK) for _ in range(3)) / 3
    most = float(seconds) * max(1, reference / REFERENCE_S)
    print(f"opened in {took:.2f} s, of {most:.2f} at most here")
    if took > most:
        raise AssertionError(f"it took {took:.2f} s to open, more than {most:.2f}")


# The medians of the milliseconds in which the page finds what is under the pointer, and in which a look at all
# points would; how many of the moves found something.
HOVER = """(() => {
    const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
    const clock = (work) => { const start = performance.now(); work(); return performance.now() - start; };
    const { nr, size, time_us } = JSON.parse(document.querySelector('#data').textContent).leaks;
    const canvas = document.querySelector('#points canvas'), box = canvas.getBoundingClientRect();
    const scans = [], moves = [];
    let nearest = 0, found = 0;
    for (let k = 0; k < 5; k++)
        scans.push(clock(() => { for (let i = 0, best = Infinity; i < nr; i++) {
            const distance = (time_us[i] - 5e4) ** 2 + (Math.log2(size[i]) - k) ** 2;
            if (distance < best) [best, nearest] = [distance, i];
        } }));
    for (let k = 0; k < 100; k++) {
        const [x, y] = [box.x + 100 + k * 37 % 100 / 100 * (box.width - 120), box.y + 20 + k * 23 % 100 / 100 * 270];
        moves.push(clock(() => canvas.dispatchEvent(
            new MouseEvent('mousemove', { clientX: x, clientY: y, bubbles: true }))));
        found += document.querySelector('#points-status').textContent !== '';
    }
    return [median(moves), median(scans), found]; })()"""


def check_hover(browser):
    browser.place("#points canvas")
    hover, scan, found = browser.evaluate(HOVER)
    print(f"hover takes {hover:.2f} ms, a look at all points {scan:.1f} ms")
    if found < 50:
        raise AssertionError(f"{found} of 100 moves found a point")
    if hover > scan / 4:
        raise AssertionError(f"hover takes {hover:.2f} ms, a look at all points {scan:.2f} ms")


def check_pictures(browser, directory):
    for theme in ("light", "dark"):
        browser.set_dark(theme == "dark")
        browser.screenshot(f"{directory}/html-report-{theme}.png", whole=True)


def main():
    checks, path, *arguments = sys.argv[1:]
    with Browser() as browser:
        for check in checks.split(","):
            browser.set_dark(False)
            browser.requests.clear()
            took = browser.open(path)
            given = [*arguments, took] if check == "open" else arguments
            globals()["check_" + check](browser, *given)
            expect("errors in the page", browser.errors, [])
            if len(browser.requests) != 1 and check != "offline":
                raise AssertionError(f"the page asked for more than itself: {browser.requests}")


if __name__ == "__main__":
    main()
