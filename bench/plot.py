"""The ratios as a bar chart on a logarithmic scale: an SVG file, written by hand so that no plotting library is needed."""

import html
import math
from typing import Any, Dict, List, Tuple

SECTIONS = {"startup": "fresh process", "capture": "warm capture", "calls": "call overhead"}
COLOURS = {"startup": "#8172b3", "capture": "#4c72b0", "calls": "#dd8452"}
LEFT, WIDTH, ROW, TOP = 300, 520, 20, 50


def bars(results: Dict[str, Any]) -> List[Tuple[str, str, float]]:
    """(section, label, ratio) of everything measured."""
    return [(name, row["workload"], row["ratio"]) for name in SECTIONS for row in results.get(name) or ()]


def svg(results: Dict[str, Any]) -> str:
    """The chart."""
    rows = bars(results)
    top_decade = max(1, math.ceil(math.log10(max([ratio for _, _, ratio in rows], default=10))))
    height = TOP + ROW * (len(rows) + len({name for name, _, _ in rows})) + 20

    def x_of(ratio: float) -> float:
        return LEFT + WIDTH * max(0.0, math.log10(ratio)) / top_decade

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 80}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{LEFT + WIDTH + 80}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="14">torch._dynamo / Pellucid (times, logarithmic)</text>',
    ]
    for decade in range(top_decade + 1):
        x = x_of(10**decade)
        parts.append(f'<line x1="{x:.1f}" y1="{TOP - 10}" x2="{x:.1f}" y2="{height - 12}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{TOP - 14}" text-anchor="middle" fill="#666">{10**decade:,}</text>')
    y, section = TOP, ""
    for name, label, ratio in rows:
        if name != section:
            parts.append(f'<text x="8" y="{y + 14}" font-weight="bold">{SECTIONS[name]}</text>')
            y, section = y + ROW, name
        end = x_of(ratio)
        parts.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{html.escape(label)}</text>')
        parts.append(f'<rect x="{LEFT}" y="{y + 3}" width="{end - LEFT:.1f}" height="{ROW - 6}" fill="{COLOURS[name]}"/>')
        parts.append(f'<text x="{end + 5:.1f}" y="{y + 14}">{ratio:,.1f}</text>')
        y += ROW
    return "\n".join([*parts, "</svg>", ""])
