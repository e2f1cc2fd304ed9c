"""Heat strips in a terminal: tokens on coloured ground, or with their weights written below.

Where there are no colours the numbers stand in their place, so that nothing is lost in a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.text import Text

from sonde.core.reports import HeatRow, HeatStrip
from sonde.reporting.render.cells import plain_number
from sonde.reporting.render.strips import FAINT, Shade, parted, signed, visible

# from grey to a full colour, which shows on dark and on light ground; the words on it are white
GREY, TOWARDS, AWAY = (0x70, 0x75, 0x7A), (0x0B, 0x5F, 0xD0), (0xB8, 0x4A, 0x00)


def strips(plot: HeatStrip, console: Console) -> Group:
    """The scale and every row; in colour if the console has any."""
    coloured = console.color_system is not None
    width = max(20, console.width - 2)
    parts: list[RenderableType] = [scale(plot, coloured)]
    for row in plot.rows:
        parts += [Text(), heading(row), *body(row, plot.limit, coloured, width)]
    return Group(*parts)


def scale(plot: HeatStrip, coloured: bool) -> Text:
    """What the colours or the signs mean."""
    far = f"{plain_number(plot.limit)} {plot.unit}".strip()
    if not coloured:
        words = f"+ {plot.towards}, − {plot.away}"
        return Text(f"{words}; {plot.unit}" if plot.unit else words, "dim")
    made = Text()
    for words, end in ((plot.away, -1.0), (plot.towards, 1.0)):
        made.append(f" {words} ", style(end)).append("  ")
    return made.append(f"full colour: {far}", "dim")


def heading(row: HeatRow) -> Text:
    """A row's label and what is said about it."""
    made = Text(visible(row.label), "bold")
    return made.append(f"  {visible(row.note)}", "dim") if row.note else made


def body(row: HeatRow, limit: float, coloured: bool, width: int) -> Iterator[Text]:
    """The tokens of a row."""
    one, _, rest = parted(row, limit)
    shown = ([one] if one is not None else []) + rest
    if coloured:
        yield painted(shown)
    else:
        yield from numbered(shown, width)


def painted(shown: Sequence[Shade]) -> Text:
    """Tokens one after the other as the text has them, on their grounds."""
    made = Text(overflow="fold")
    for shade in shown:
        made.append(visible(shade.text), style(shade.strength))
    return made


def style(strength: float) -> str:
    """The ground for a weight: none for hardly any."""
    if abs(strength) < FAINT:
        return ""
    end = TOWARDS if strength > 0 else AWAY
    mixed = (round(a + (b - a) * abs(strength)) for a, b in zip(GREY, end, strict=True))
    return "#ffffff on #" + "".join(f"{part:02x}" for part in mixed)


def numbered(shown: Sequence[Shade], width: int) -> Iterator[Text]:
    """Lines of tokens over lines of their weights."""
    above, below = "", ""
    for shade in shown:
        token, weight = visible(shade.text).replace(" ", "␣"), signed(shade.weight)
        room = max(cell_len(token), len(weight)) + 1
        if above and cell_len(above) + room > width + 1:
            yield from (Text(above.rstrip()), Text(below.rstrip(), "dim"))
            above, below = "", ""
        above += token + " " * (room - cell_len(token))
        below += weight.ljust(room)
    yield from (Text(above.rstrip()), Text(below.rstrip(), "dim"))
