"""Count passes in place of running them. Knows token ids and who pays, nothing of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from sonde.core.costs import FIELDS, Cost
from sonde.engine.prefixes import PrefixCache, SourceCache, opened
from sonde.engine.schedule import Ids, Pass, Shape


class DryRun:
    """Counts passes in place of running them: which prompt pays for which tokens, and the shapes.

    A token that several prompts share is paid for by the first that needs it.
    """

    def __init__(self, prompts: int) -> None:
        self.spent = {field.name: [0] * prompts for field in FIELDS}
        self.spent["prompts"] = [1] * prompts
        self.shapes: list[Shape] = []

    @property
    def costs(self) -> tuple[Cost, ...]:
        """What each prompt pays."""
        rows = zip(*self.spent.values(), strict=True)
        return tuple(Cost(**dict(zip(self.spent, row, strict=True))) for row in rows)

    def charge(self, prompt: int, **more: int) -> None:
        """Let a prompt pay for something."""
        for name, count in more.items():
            self.spent[name][prompt] += count

    def count(
        self,
        passes: Iterable[Pass],
        payers: Sequence[int],
        prefixes: PrefixCache[None] | None = None,
        sources: SourceCache[None] | None = None,
        guests: Mapping[int, Sequence[int]] = MappingProxyType({}),
    ) -> None:
        """Count passes; member m is paid for by payers[m], its options by guests[m], one each.

        What `prefixes` or `sources` hold by then is not paid for again.
        """
        for each in passes:
            if sources is not None:
                self._read([payers[member] for member in each.members], each.work, sources)
            if prefixes is not None:
                self._open(each, payers, prefixes)
            for member, new in zip(each.members, each.new, strict=True):
                self.charge(payers[member], computed=new)
            for member, padding in zip(each.members, each.padding, strict=False):
                self.charge(payers[member], padding=padding)
            beside = [guest for member in each.members for guest in guests.get(member, ())]
            for guest, new in zip(beside, each.beside, strict=True):
                self.charge(guest, computed=new)
            self.shapes += each.shapes

    def _open(self, each: Pass, payers: Sequence[int], cache: PrefixCache[None]) -> None:
        """Count the prefixes of a pass that are computed before it, several together."""
        behind = each.prefixes or [each.prefix] * len(each.members)
        pairs = zip(reversed(behind), reversed(each.members), strict=True)
        first = {ids: payers[member] for ids, member in pairs if ids}
        wanted = list(dict.fromkeys(ids for ids in behind if ids))
        for batch in opened([ids for ids in wanted if ids not in cache.kept], each.size):
            for ids in batch:
                own, padding = len(ids), len(batch[0]) - len(ids)
                self.charge(first[ids], computed=own, stems=own, padding=padding)
        cache.get_all(wanted, each.size)

    def _read(self, payers: Sequence[int], texts: Sequence[Ids], cache: SourceCache[None]) -> None:
        """Count what an encoder reads of some texts together."""
        first = dict(zip(reversed(texts), reversed(payers), strict=True))
        missing = cache.missing(texts)
        width = max(map(len, missing), default=0)
        for ids in missing:
            self.charge(first[ids], computed=len(ids), padding=width - len(ids))
            cache.keep(ids, lambda: None)
        self.shapes.append(Shape(rows=len(missing), width=width, behind=0, reads=0))
