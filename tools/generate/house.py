"""``doc/layers.svg``: the packages in their layers, with a line from each to those it imports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from test.house.test_layers import LAYERS, MODULES, imports_of, room_of, room_of_file

_WIDTH, _ROW, _BOX, _TOP = 1180, 86, 30, 20
_STYLE = "font-family:sans-serif;font-size:13px"


def imported_packages() -> set[tuple[str, str]]:
    """Return the pairs (importer, imported) of packages."""
    pairs = set()
    for path in MODULES:
        room = room_of_file(path)
        for name, _line in imports_of(path):
            parts = name.split(".")
            if parts[0] == "swift" and len(parts) > 1 and room in LAYERS:
                other = room_of(parts[1:])
                if other in LAYERS and other != room:
                    pairs.add((room, other))
    return pairs


def picture() -> str:
    """Return the drawing; a line that goes up is red."""
    pairs = imported_packages()
    shown = {room for pair in pairs for room in pair}
    layers: dict[int, list[str]] = defaultdict(list)
    for room in sorted(shown):
        layers[LAYERS[room]].append(room)
    numbers = sorted(layers, reverse=True)
    place = {
        room: (_WIDTH * (column + 1) // (len(layers[number]) + 1), _TOP + row * _ROW)
        for row, number in enumerate(numbers)
        for column, room in enumerate(layers[number])
    }
    height = _TOP + _ROW * len(numbers)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" style="{_STYLE}">',
        "<title>Packages by layer; a line leads from a package to one that it imports</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
    ]
    for one, other in sorted(pairs):
        (x, y), (to_x, to_y) = place[one], place[other]
        color = "#c33" if LAYERS[one] < LAYERS[other] else "#9ab"
        way = f"Q{(x + to_x) // 2} {y - 34} {to_x} {y}" if y == to_y else f"M{x} {y + _BOX} L{to_x} {to_y}"
        lines.append(f'<path d="M{x} {y} {way}" stroke="{color}" stroke-width="0.7" fill="none"/>')
    for room, (x, y) in sorted(place.items()):
        width = 16 + 8 * len(room)
        box = f'x="{x - width // 2}" y="{y}" width="{width}" height="{_BOX}" rx="4"'
        lines.append(f'<rect {box} fill="#eef" stroke="#446"/>')
        lines.append(f'<text x="{x}" y="{y + 20}" text-anchor="middle">{room}</text>')
    return "\n".join((*lines, "</svg>")) + "\n"


def files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the drawing below ``root``."""
    yield root / "doc/layers.svg", picture()
