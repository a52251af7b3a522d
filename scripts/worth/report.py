"""What scripts/worth.sh computes from its measurements and writes about them. Nothing here measures or waits."""
import random

WINDOW = 1_000_000  # microseconds
BAD = 3  # times the reference's p99
COLOURS = ["#1b1b1b", "#8a8a8a", "#d62728", "#e8853b", "#9467bd", "#1f77b4", "#17a2b8", "#bcbd22", "#2ca02c", "#0b6e4f"]
# metric: its column, how it is written, and whether more of it is worse
METRICS = {
    "p50": ("p50, µs", "{:,.0f}", True),
    "p90": ("p90, µs", "{:,.0f}", True),
    "p99": ("p99, µs", "{:,.0f}", True),
    "bad": ("bad windows, %", "{:.1f}", True),
    "work": ("batch work, jobs/s", "{:,.1f}", False),
    "busy": ("utilisation, %", "{:.0f}", False),
    "idle": ("price: idle CPUs", "{:.2f}", True),
    "throttled": ("throttled, ms/s", "{:.1f}", True),
    "steal": ("steal, %", "{:.1f}", True),
}


def percentile(values, part):
    """The value below which `part` of `values`, at least one, lie."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)]


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def windows(answers, skipped):
    """The latencies of each second of intended times, without the first `skipped` ones. `answers`: (intended, latency)."""
    found = {}
    for intended, latency in answers:
        found.setdefault(intended // WINDOW, []).append(latency)
    return [found[window] for window in sorted(found) if window >= skipped]


def latencies(answers, skipped):
    """p50 and p90 of all answers, and p99 as the median over the windows, which are returned, too."""
    kept = windows(answers, skipped)
    every = [latency for window in kept for latency in window]
    of_windows = [percentile(window, 0.99) for window in kept]
    return {"p50": percentile(every, 0.5), "p90": percentile(every, 0.9), "p99": median(of_windows), "windows": of_windows,
            "answers": every}


def order(ways, seed, number):
    """The ways in the order of round `number`."""
    shuffled = list(ways)
    random.Random(f"{seed} {number}").shuffle(shuffled)
    return shuffled


def spread(values):
    return {"median": median(values), "low": min(values), "high": max(values)}


def overlap(one, other):
    return one["low"] <= other["high"] and other["low"] <= one["high"]


def summarise(plays, ways):
    """way -> metric -> median and range over its rounds. Windows are bad beside the p99 of ways[0]; of these, the share of all
    windows is in place of the median."""
    plays = [play for play in plays if play["way"] in ways]
    reference = median([play["p99"] for play in plays if play["way"] == ways[0]])
    summary = {}
    for way in ways:
        own = [play for play in plays if play["way"] == way]
        for play in own:
            play["bad"] = 100 * sum(p99 > BAD * reference for p99 in play["windows"]) / len(play["windows"])
        summary[way] = {metric: spread([play[metric] for play in own]) for metric in METRICS if own[0][metric] is not None}
        of_windows = [p99 > BAD * reference for play in own for p99 in play["windows"]]
        summary[way]["bad"]["median"] = 100 * sum(of_windows) / len(of_windows)
        every = [latency for play in own for latency in play["answers"]]
        if len(every) >= 100_000:
            summary[way]["p99.9"] = percentile(every, 0.999)
    return summary


def ranking(summary, metric):
    """ "d < a = b": ways whose ranges overlap are equal."""
    ranked = sorted((way for way in summary if metric in summary[way]), key=lambda way: summary[way][metric]["median"])
    text = ranked[0] if ranked else ""
    for before, way in zip(ranked, ranked[1:]):
        text += (" = " if overlap(summary[before][metric], summary[way][metric]) else " < ") + way
    return text


def losses(summary, titles, defaults):
    """Sentences about what is worse than each of the ways `defaults`, beyond the ranges of the rounds."""
    sentences = []
    for default in (way for way in defaults if way in summary):
        worse = []
        for way in (way for way in summary if way not in ("a", "a2", *defaults)):
            for metric in ("p90", "p99", "work"):
                one, other = summary[way].get(metric), summary[default].get(metric)
                if one is None or other is None or overlap(one, other):
                    continue
                if (one["median"] > other["median"]) == METRICS[metric][2]:
                    change = 100 * (one["median"] / max(other["median"], 1e-9) - 1)
                    worse.append(f"{METRICS[metric][0].split(',')[0]} of ({way}) {titles[way]} by {abs(change):.0f} %")
        sentences.append(f"Worse than ({default}) {titles[default]}: " + ("; ".join(worse) or "nothing") + ".")
    return " ".join(sentences) or "Kubernetes' defaults were not played, so that nothing is compared with them."


def table(summary, titles):
    """In Markdown: medians with ranges, and for p90, p99 and work the ratio to (a) and to (b)."""
    lines = ["| way | " + " | ".join(METRICS[metric][0] for metric in METRICS) + " | p99.9, µs |",
             "|---" * (len(METRICS) + 2) + "|"]
    for way, of in summary.items():
        cells = [f"({way}) {titles[way]}"]
        for metric, (_, form, _) in METRICS.items():
            if metric not in of:
                cells.append("–")
                continue
            value = of[metric]
            text = f"{form.format(value['median'])} ({form.format(value['low'])} to {form.format(value['high'])})"
            base = summary.get("b" if metric == "work" else "a", {}).get(metric)
            if metric in ("p90", "p99", "work") and base and base["median"] and base is not value:
                text += f", {value['median'] / base['median']:.2f} ×"
            cells.append(text)
        cells.append(f"{of['p99.9']:,}" if "p99.9" in of else "–")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def ticks(low, high):
    """1, 2 and 5 times powers of ten that span `low` to `high`, both above 0."""
    steps = [factor * 10**power for power in range(0, 9) for factor in (1, 2, 5)]
    first = max((step for step in steps if step <= low), default=1)
    last = min((step for step in steps if step >= high), default=steps[-1])
    return [step for step in steps if first <= step <= last]


def picture(plays, summary, titles):
    """An SVG of p99 against batch work: a dot for each round, and the median with its ranges for each way."""
    from math import log10
    width, height, left, top, right, bottom = 880, 460, 80, 40, 320, 60
    marks = ticks(min(of["p99"]["low"] for of in summary.values()), max(of["p99"]["high"] for of in summary.values()))
    most = max((of["work"]["high"] for of in summary.values() if "work" in of), default=1) * 1.05 or 1
    span = max(log10(marks[-1]) - log10(marks[0]), 1e-9)

    def x(work):
        return left + (width - left - right) * (work or 0) / most

    def y(p99):
        return top + (height - top - bottom) * (log10(marks[-1]) - log10(p99)) / span

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{left}" y="20" font-size="14">p99 of the service and batch work beside it; lower and further right is '
             'better</text>']
    for mark in marks:
        parts.append(f'<path d="M{left} {y(mark):.1f}H{width - right}" stroke="#ddd"/><text x="{left - 6}" y="{y(mark) + 4:.1f}" '
                     f'text-anchor="end">{mark / 1000:g} ms</text>')
    for fifth in range(6):
        work = most / 1.05 * fifth / 5
        parts.append(f'<text x="{x(work):.1f}" y="{height - bottom + 18}" text-anchor="middle">{work:,.0f}</text>')
    parts.append(f'<text x="{(left + width - right) / 2}" y="{height - 20}" text-anchor="middle">batch work, jobs/s</text>')
    for number, (way, of) in enumerate(summary.items()):
        colour = COLOURS[number % len(COLOURS)]
        for play in plays:
            if play["way"] == way:
                parts.append(f'<circle cx="{x(play["work"]):.1f}" cy="{y(play["p99"]):.1f}" r="2.5" fill="{colour}" opacity="0.5"/>')
        work, p99 = of.get("work", spread([0])), of["p99"]
        parts.append(f'<path d="M{x(work["low"]):.1f} {y(p99["median"]):.1f}H{x(work["high"]):.1f}M{x(work["median"]):.1f} '
                     f'{y(p99["low"]):.1f}V{y(p99["high"]):.1f}" stroke="{colour}"/>')
        parts.append(f'<circle cx="{x(work["median"]):.1f}" cy="{y(p99["median"]):.1f}" r="6" fill="{colour}"/>')
        parts.append(f'<circle cx="{width - right + 24}" cy="{top + 16 + 24 * number}" r="6" fill="{colour}"/>'
                     f'<text x="{width - right + 38}" y="{top + 20 + 24 * number}">({way}) {titles[way]}</text>')
    return "\n".join(parts + ["</svg>\n"])
