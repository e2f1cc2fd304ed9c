"""The report of a run, of any probe. The order is fixed: the answer comes first.

1. title, summary, warnings, headline figure
2. what was prompted   3. what the model answered   4. facts   5. breakdowns
6. method, settings, provenance

Everything is data: sentences are ids with values, tables and figures are frames.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl
from polars import col

from sonde.bridge import as_answers
from sonde.evaluation.estimate import Metric
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.stats import LEVEL
from sonde.evaluation.tables import Results
from sonde.reports.cells import Estimate, cell, interval, number
from sonde.reports.collapse import COVERED, EXCESS, Collapse, collapses, function_words
from sonde.reports.depth import prompts_of, top_frame
from sonde.reports.model import Facts, Item, Report, Section
from sonde.reports.sentences import COLUMNS, Sentence, say, text

if TYPE_CHECKING:
    from sonde.runs.run import Run

BARS, TEMPLATES, FEWEST, MATRIX = 10, 4, 5, (20, 10)  # names, templates, facts of a group, cells
NOTABLE = 0.01  # share of excluded facts that is worth a warning
USER = ("details.", "numbers.")


def build(
    results: Results,
    estimates: pl.DataFrame,
    *,
    run: "Run | None" = None,
    exhibits: Iterable[Exhibit] = (),
) -> Report:
    """The report of the results of a run.

    Args:
        estimates: as `evaluation.estimate_results` gives them, with those of further groups.
        run: where prompts and settings are read from.
        exhibits: further tables and figures.
    """
    return _Builder(results, estimates, run).report(exhibits)


class _Builder:
    def __init__(self, results: Results, estimates: pl.DataFrame, run: "Run | None") -> None:
        self.results, self.estimates, self.run = results, estimates, run
        self.layout = results.probe.layout
        self.counts = results.counts()
        lists = ([m] if isinstance(m, Metric) else m.metrics for m in results.probe.metrics)
        self.metrics = {metric.id: metric for metric in chain.from_iterable(lists)}
        self.facts, self.scored = results.facts, self.counts["scored"]
        relations = self.facts.unique("relation", maintain_order=True)
        self.labels = {
            str(r): label or str(r)
            for r, label in relations.select("relation", "label").iter_rows()
        }
        self.one = len(self.labels) == 1
        self.single = self.scored == self.counts["prompts"]  # one prompt per fact
        self.collapsed = collapses(results)
        plain = estimates.filter(col("run").is_null())
        self.plain = plain.filter(col("reference").is_null())
        self.contrasts = plain.filter(col("reference").is_not_null())
        # of a number that only counts facts, or only relations, that one
        order = self.plain.sort(col("over") == self.layout.over)
        self.all = {
            (e["metric"], e["of"], tuple(e["group_by"]), tuple(e["group"])): _estimate(e)
            for e in order.iter_rows(named=True)
            if e["value"] is not None
        }
        self.headlines = [m for id in self.layout.headlines if (m := self.metrics.get(id))]
        self.first = self.headlines[0]
        verdict = self.metrics.get(self.layout.verdict, self.first)
        self.compared = next(
            (m for m in (self.first, verdict) if self.get(m, "difference")), self.first
        )
        model = "The model" if run is None else run.manifest.model["name"]
        self.model = model.removeprefix("hf:").rstrip("/").rsplit("/", 1)[-1]
        self.dataset = "the dataset" if run is None else run.manifest.dataset["name"]

    def get(
        self, metric: Metric, of: str = "value", by: Sequence[str] = (), group: Sequence[str] = ()
    ) -> Estimate | None:
        return self.all.get((metric.id, of, tuple(by), tuple(group)))

    def report(self, exhibits: Iterable[Exhibit]) -> Report:
        extra = self.layout.extra(self.results, self.plain) if self.layout.extra else ()
        sections = [
            Section("prompts", "What was prompted", list(self.prompted())),
            Section("answers", "What the model answered", list(self.answered())),
            Section("facts", "Facts", list(self.fact_table())),
            Section("breakdowns", "Breakdowns", [*self.breakdowns(), *extra, *exhibits]),
            Section("method", "Method, settings and provenance", list(self.method()), folded=True),
        ]
        title = f" · {self.layout.title}" if self.layout.title else ""
        return Report(
            title=self.title(),
            kicker=f"{self.results.probe.name.upper()} · {self.model} · {self.dataset}{title}",
            summary=list(self.summary()),
            lead=list(self.lead()),
            warnings=[(heading, lines) for heading, lines in self.warnings() if lines],
            sections=[section for section in sections if section.items],
            estimates=self.estimates,
            over=self.layout.over,
            metrics=list(self.metrics.values()),
            counts=self.counts,
            provenance=self.run.provenance() if self.run else {},
        )

    # 1. title, summary, warnings, headline figure

    def title(self) -> Sentence:
        value, empty = self.get(self.first), self.counts.get("empty", 0)
        if 2 * empty > self.counts["prompts"]:
            return say("title.empty", model=self.model, k=empty, n=self.counts["prompts"])
        shown = number(value.value if value else None, self.first.unit)
        score = {"model": self.model, "label": self.first.label, "value": shown}
        if self.collapsed and self.one:
            c = self.collapsed[0]
            k = {"share": c.share, "k": round(c.share * c.n), "n": c.n, "correct": c.correct}
            id = "title.collapsed" if self.single else "title.dominated"
            first = say(id, names=c.names, **score, **k)
        elif (hits := self.hits()) is not None:
            first = say("title.facts", model=self.model, k=hits, n=self.scored)
        else:
            first = say("title.score", **score, over=self.over())
        difference = self.get(self.first, "difference")
        if difference is None or self.compared is not self.first:
            return first
        against = {"points": difference.value, "baseline": self.first.baseline_label}
        return say(f"title.{_side(difference)}", first=first, **against)

    def hits(self) -> int | None:
        """The number of correct facts, if the first headline is their share."""
        correct, value = self.results.rows["correct"], self.get(self.first)
        share = correct.mean()
        if not (self.one and self.single) or value is None or share is None:
            return None
        return int(correct.sum()) if abs(float(share) - value.value) < 1e-9 else None

    def over(self) -> Sentence:
        values = {"facts": self.scored, "relations": len(self.labels)}
        return say("over.one" if self.one else f"over.{self.layout.over}", **values)

    def reasons(self) -> dict[str, int]:
        """Why facts are excluded, and how many."""
        lost = self.facts.filter(
            ~col("fact_no").is_in(self.results.rows["fact_no"].unique().implode())
        )
        reasons = lost["excluded"].fill_null("no answer to grade").value_counts(sort=True)
        return dict(reasons.iter_rows())

    def summary(self) -> Iterator[Sentence]:
        used = self.results.table(["relation", "template_no", "text"]).unique(maintain_order=True)
        texts = used.collect()["text"].drop_nulls()
        about = {
            "model": self.model,
            "n": self.facts.height,
            "dataset": self.dataset,
            "left": self.reasons(),
        }
        about |= {"relation": next(iter(self.labels.values())), "relations": len(self.labels)}
        if not self.one:
            yield say("prompted.many", **about)
        elif len(texts) == 1:
            yield say("prompted.one", template=texts[0], **about)
        else:
            most = self.results.rows["fact_no"].value_counts()["count"].max()
            yield say("prompted.several", prompts=most, **about)
        for metric in dict.fromkeys((self.first, self.compared)):
            if (e := self.get(metric)) is None:
                continue
            hits = self.hits() if metric is self.first else None
            if hits is not None:
                yield say("score.facts", k=hits, n=self.scored, e=(e, metric.unit))
            else:
                yield say("score.mean", label=metric.label, e=(e, metric.unit), over=self.over())
        metric = self.compared
        difference, baseline = self.get(metric, "difference"), self.get(metric, "baseline")
        if difference is None or baseline is None:
            return
        side = _side(difference)
        against = {"baseline": metric.baseline_label, "b": number(baseline.value, metric.unit)}
        yield say(f"baseline.{side}", **against, d=(difference, metric.unit))
        by = {
            label: e
            for r, label in self.labels.items()
            if (e := self.get(metric, "difference", ("relation",), (r,))) and e.p is not None
        }
        if len(by) > 1:
            sides = {label: _side(e) for label, e in by.items()}
            over, under = (
                [r for r, s in sides.items() if s == side] for side in ("above", "below")
            )
            found = {"above": len(over), "below": len(under), "over": over, "under": under}
            id = "relations.some" if over or under else "relations.none"
            yield say(id, n=len(by), per=round(self.scored / len(by)), **found)

    def lead(self) -> Iterator[Exhibit]:
        """The headline metrics of the first one's unit, each with its control; then the others."""
        rows, seen, others = [], set(), []
        for metric in self.headlines:
            e = self.get(metric)
            if e is None or (e.value, e.n) in seen:
                continue
            seen.add((e.value, e.n))
            if metric.unit != self.first.unit:
                others.append((metric.label, interval(e, metric.unit)))
                continue
            rows.append((metric.label, "model", *e[:3], e.n))
            if (b := self.get(metric, "baseline")) and metric in (self.first, self.compared):
                rows.append((metric.baseline_label, "control", *b[:3], b.n))
        for name in self.estimates["run"].drop_nulls().unique(maintain_order=True):
            for e in (
                self.estimates.filter(
                    run=name, metric=self.first.id, of="value", over=self.layout.over
                )
                .filter(col("group_by").list.len() == 0)
                .iter_rows(named=True)
            ):
                rows.append((name, "control", e["value"], e["low"], e["high"], e["n"]))
        if rows:
            frame = pl.DataFrame(rows, ("label", "color", "x", "low", "high", "n"), orient="row")
            units = {"x": self.first.unit, "color": "control"}
            yield Exhibit("headlines", "Headline numbers", frame, units, "intervals")
        if others:
            frame = pl.DataFrame(others, ("number", "value [95% CI]"), orient="row")
            yield Exhibit("further", "Further numbers", frame)

    def warnings(self) -> Iterator[tuple[str, list[Sentence]]]:
        reasons, n = self.reasons(), self.facts.height
        excluded = []
        if sum(reasons.values()) >= NOTABLE * n:
            excluded.append(say("excluded", k=sum(reasons.values()), n=n, reasons=reasons))
            if "fill" in self.modes and getattr(self.results.probe, "answer", ""):
                command = f"sonde run {self.results.probe.name} … --answer score"
                excluded.append(say("excluded.score", command=command))
        yield "Excluded facts", excluded
        yield "Dominating answers", self.dominating()
        yield "Answers", list(self.empty())
        yield "Certificate", list(self.certificate())

    @cached_property
    def modes(self) -> list[str]:
        rows = self.results.rows
        return rows["answer_mode"].unique().to_list() if "answer_mode" in rows.columns else []

    def dominating(self) -> list[Sentence]:
        if not self.collapsed:
            return []
        c = self.collapsed[0]
        if not self.one:
            worst = [(c.label, c.names, c.share, c.gold) for c in self.collapsed[:3]]
            return [say("collapse.relations", k=self.n_collapsed, n=len(self.labels), worst=worst)]
        be = "is" if c.hits == 1 else "are"
        lines = [say("collapse.one" if len(c.names) == 1 else "collapse.two", **c._asdict())]
        if c.hits > 0.5 * c.correct:
            lines.append(say("collapse.hits", be=be, **c._asdict()))
        return lines

    @property
    def n_collapsed(self) -> int:
        return len({c.relation for c in self.collapsed})

    def empty(self) -> Iterator[Sentence]:
        """Answers that state nothing, and what to do about it."""
        n, model = self.counts["prompts"], self.run.manifest.model if self.run else {}
        chat, blank = model.get("chat") or {}, 2 * self.counts.get("empty", 0) > n
        if blank:
            yield say("empty", k=self.counts["empty"], n=n)
        if {"fill", "generate"} & {*self.modes}:
            k, names = function_words(self.results)
            if 2 * k > n:
                yield say("empty.function", k=k, n=n, names=names)
        cut = self.counts.get("unfinished", 0)
        if cut > 0.1 * n:
            yield say("unfinished", k=cut, n=n, flag="--max-tokens")
        if blank and not chat and model.get("details", {}).get("chat template"):
            yield say("chat", command="--chat always")
        tokens = int(chat.get("thinking", 0))
        if (tokens or blank) and chat and self.run:
            open_ended = sum(
                _unended(batch.result) for batch in map(as_answers, self.run.answers())
            )
            if open_ended:
                yield say("reasoning", k=open_ended, n=n, flag="--chat-thinking", tokens=tokens)

    def certificate(self) -> Iterator[Sentence]:
        if self.run is None:
            return
        from sonde.runs.certificates import doubt  # runs are read, not imported, by reports

        certificate = self.run.manifest.certificate
        if certificate and certificate["verdict"] != "equal":
            yield say(
                "certificate.differs",
                verdict=certificate["verdict"],
                reference=certificate["reference"],
            )
        elif doubt(self.run.manifest):
            yield say("certificate.none", command="sonde doctor -m MODEL --against hf:FOLDER")
        if certificate and "later" in certificate:
            yield say("certificate.later")

    # 2. what was prompted, 3. what the model answered

    def prompted(self) -> Iterator[Item]:
        sizes = self.facts["n_options"].max() if "n_options" in self.facts.columns else None
        for mode in self.modes:
            yield say(f"request.{mode}", options=sizes)
        chat = (self.run.manifest.model.get("chat") if self.run else None) or {}
        if chat:
            more = [f"the system text {chat['system']!r}"] if chat.get("system") else []
            yield say("request.chat", more=more)
        used = self.results.table(["relation", "text"]).unique(maintain_order=True).collect()
        used = used.drop_nulls().with_columns(
            relation=col("relation").cast(pl.String).replace(self.labels)
        )
        if len(used) > 1:
            shown = used if self.one else used.unique("relation", keep="first", maintain_order=True)
            shown = shown.head(TEMPLATES).rename({"text": "template"})
            yield Exhibit("templates", "Templates", shown.drop("relation") if self.one else shown)
            if len(shown) < len(used):
                yield say("templates.some", shown=len(shown), n=len(used))
        yield from self.example()

    def example(self) -> Iterator[Exhibit]:
        """The first prompt of the first fact, with its top answers."""
        if self.run is None:
            return
        fact = int(self.results.rows["fact_no"][0])
        for batch in map(as_answers, self.run.answers()):
            if prompts := prompts_of(self.results, [batch], [fact], shown=300)[fact]:
                words, (*_, top) = prompts[0]
                frame = top_frame(top)
                gold = self.facts["gold"][fact] or ""
                units = {"probability": "bar"}
                yield Exhibit("example", words, frame, units, note=plain("example", gold=gold))
                return

    def answered(self) -> Iterator[Item]:
        """Answers next to gold answers; over several relations, where answers collapse."""
        if self.one:
            yield from self.distribution()
            return
        if self.collapsed:
            rows = []
            for c in self.collapsed[:BARS]:
                text = f"{number(c.share, 'percent')}, gold {number(c.gold, 'percent')}"
                label = f"{c.label}: {', '.join(c.names)}"
                rows += [(label, "answers", c.share, text), (label, "gold answers", c.gold, None)]
            frame = pl.DataFrame(rows, ("label", "color", "x", "text"), orient="row")
            units = {"x": "percent", "color": "control"}
            some = BARS if len(self.collapsed) > BARS else 0
            note = plain("collapse.figure", k=self.n_collapsed, n=len(self.labels), some=some)
            title = "Relations in which one or two answers dominate"
            yield Exhibit("collapsed", title, frame, units, "bars", note, "share of answers")
        confidence = self.confidence()
        yield from confidence
        if not self.collapsed and not confidence:
            yield from self.distribution()

    def distribution(self) -> Iterator[Exhibit]:
        """The most frequent answers and gold answers, of each task apart."""
        counts = self.results.answer_distribution()
        tasks = [
            name
            for name in counts.columns
            if name not in ("relation", "answer", "n", "correct", "gold")
        ]
        counts = counts.group_by(*tasks, "answer", maintain_order=True).agg(
            col("n", "correct", "gold").sum()
        )
        parts = (
            counts.partition_by(tasks, as_dict=True, maintain_order=True) if tasks else {(): counts}
        )
        for task, part in parts.items():
            if tasks and not (part["gold"] > 0).filter(part["n"] > 0).any():
                continue  # another task, such as saying whether a statement is true
            part = part.sort(
                pl.max_horizontal("n", "gold"), "n", descending=True, maintain_order=True
            )
            shown = part.head(BARS).sort("n", "gold", descending=True)
            rest = part[BARS:].select(col("n", "correct", "gold").sum())
            lines = shown.select("answer", "n", "correct", "gold").rows()
            if len(part) > BARS:
                lines.append((f"{len(part) - BARS:,} other names", *rest.row(0)))
            rows = []
            for name, n, correct, gold in lines:
                rows.append((name, "answers", n, correct, f"{n:,}, gold {gold:,}"))
                rows.append((name, "gold answers", gold, None, None))
            frame = pl.DataFrame(rows, ("label", "color", "x", "part", "text"), orient="row")
            unit = "facts" if self.single else "prompts"
            named = " · ".join(map(str, task))
            note = plain("counted", unit=unit, n=int(part["n"].sum()))
            title = f"Answers next to gold answers{f' ({named})' if named else ''}"
            units = {"x": "count", "color": "control"}
            id = "-".join(("answers", *map(str, task)))
            yield Exhibit(id, title, frame, units, "bars", note, "answers")

    def confidence(self) -> list[Exhibit]:
        """How many answers have which probability, and how many of them are correct."""
        if "confidence" not in self.results.rows.columns:
            return []
        place = (col("confidence").clip(0, 0.9999) * 10).floor().cast(pl.Int64)
        rows = self.results.rows.lazy().drop_nulls("confidence")
        bins = rows.group_by(bin=place).agg(n=pl.len(), part=col("correct").sum()).collect()
        if bins.is_empty():
            return []
        counts = {bin: (n, part) for bin, n, part in bins.iter_rows()}
        lines = []
        for bin in range(10):
            n, part = counts.get(bin, (0, 0))
            lines.append(
                (
                    f"{10 * bin} to {10 * bin + 10}%",
                    n,
                    part,
                    f"{part:,} of {n:,} correct" if n else "",
                )
            )
        frame = pl.DataFrame(lines, ("label", "x", "part", "text"), orient="row")
        title, note = "Probability of the top answer", plain("calibrated")
        return [Exhibit("confidence", title, frame, {"x": "count"}, "bars", note, "prompts")]

    # 4. facts

    def fact_table(self) -> Iterator[Item]:
        """Every fact with its answers; those that are excluded without."""
        rows = self.results.rows.columns
        wanted = [name for name in self.layout.browse if name != "correct"]
        if "confidence" in rows and "confidence" not in wanted:
            wanted.insert(wanted.index("rank") if "rank" in wanted else len(wanted), "confidence")
        user = [name for name in self.facts.columns if name.startswith(USER)]
        lines = self.results.browse([*wanted, "correct", *user], self.facts.height)
        lines = lines.with_columns(col(pl.Enum).cast(pl.String))
        tasks = [
            n for n in lines.columns if n not in (*wanted, *user, "fact_no", "correct", "prompts")
        ]
        missing = self.facts.filter(~col("fact_no").is_in(lines["fact_no"].implode()))
        known = [name for name in (*wanted, *user) if name in self.facts.columns]
        missing = missing.select("fact_no", *known).with_columns(col(pl.Enum).cast(pl.String))
        lines = pl.concat([lines, missing], how="diagonal_relaxed").sort(
            "fact_no", maintain_order=True
        )
        several = "" if self.single else "several."
        units = {"answer": "answer", "rank": "count", "confidence": "percent"}
        shown = {
            "id": self.facts["fact"].gather(lines["fact_no"]),
            "share": lines["correct"],
            "prompts": lines["prompts"],
        }
        named = {}
        for name in dict.fromkeys((*wanted, *tasks, *user)):
            if name == "relation" and self.one or name not in lines.columns:
                continue
            values = lines[name]
            if name == "relation":
                values = values.replace(self.labels)
            if values.dtype == pl.List:
                values = pl.Series([cell(v) for v in values.to_list()], dtype=pl.String)
            label = COLUMNS.get(several + name) or COLUMNS.get(name) or _plain(name)
            shown[label], named[label] = values, units.get(name, "")
            if name == "answer" and several:
                pairs = lines.select(
                    pl.concat_list(
                        (col("correct") * col("prompts")).round(), col("prompts").cast(pl.Float64)
                    )
                )
                shown["correct prompts"], named["correct prompts"] = pairs.to_series(), "share"
        frame = pl.DataFrame(shown)
        outcome = [3 if s is None else 0 if s == 1 else 2 if s == 0 else 1 for s in frame["share"]]
        labels = ("correct", "sometimes", "incorrect", "excluded")
        filters = [("all", [0, 1, 2, 3]), *((label, [k]) for k, label in enumerate(labels))]
        numbers = lines["fact_no"].to_list()

        def depth(rows: Sequence[int]) -> list[list[Any]]:
            assert self.run is not None
            answers = map(as_answers, self.run.answers())
            prompts = prompts_of(self.results, answers, [numbers[row] for row in rows], shown=300)
            return [prompts[numbers[row]] for row in rows]

        path = self.run.path if self.run else "RUN"
        yield say("facts.help")
        yield Facts(
            frame=frame,
            units=named,
            filters=filters,
            outcome=outcome,
            depth=depth if self.run else None,
            command=f"sonde show {path} FACT",
        )

    # 5. breakdowns

    def breakdowns(self) -> Iterator[Exhibit]:
        """Metrics in each group, contrasts, then ranks, confusions and probabilities."""
        yield from self.controls()
        seen = set()
        for by in self.plain["group_by"].unique(maintain_order=True).to_list():
            inner = [name for name in by if not (self.one and name == "relation")]
            # templates of several relations have nothing in common but their number
            if len(inner) != 1 or inner[0] in seen or (inner[0] == "template_no" and not self.one):
                continue
            seen.add(inner[0])
            yield from self.groups(by, inner[0])
        yield from self.differences()
        if "rank" in self.results.rows.columns:
            yield from self.first_k()
        if self.one:
            yield from self.confusion()
            yield from self.confidence()

    def groups(self, by: Sequence[str], name: str) -> Iterator[Exhibit]:
        part = self.plain.filter(col("group_by") == list(by), of="value")
        present = part["metric"].unique(maintain_order=True).to_list()
        order = [
            m for m in (*self.layout.headlines, *self.layout.columns, *present) if m in present
        ]
        if not order:
            return
        metric, at = self.metrics[order[0]], by.index(name)
        values = [
            e["group"]
            for e in part.filter(metric=metric.id)
            .unique("group", keep="first", maintain_order=True)
            .iter_rows(named=True)
        ]
        if len(values) < 2:
            return
        labels = self.group_labels(name)
        if (
            name not in self.results.probe.axes
            and not name.startswith("numbers.")
            and name != "template_no"
        ):
            values.sort(
                key=lambda g: (
                    g[at] == "other",
                    -(self.get(metric, "value", by, g) or Estimate(0)).value,
                )
            )
        columns = (
            [
                self.metrics[id]
                for id in dict.fromkeys((*self.layout.columns, *self.layout.headlines))
                if id in present and id != metric.id
            ][:4]
            if name == "relation"
            else []
        )
        rows = []
        for label, keys, group in [
            ("All", (), ()),
            *((labels.get(g[at], g[at]), by, g) for g in values),
        ]:
            found = {of: self.get(metric, of, keys, group) for of in ("value", "baseline")}
            more = [
                interval(e._replace(low=None), m.unit)
                if (e := self.get(m, "value", keys, group))
                else ""
                for m in columns
            ]
            for of, e in found.items():
                if e:
                    series = self.model if of == "value" else metric.baseline_label
                    rows.append((label, series, *e[:3], *more, e.n))
        if not rows:
            return
        tests = [
            e for g in values if (e := self.get(metric, "difference", by, g)) and e.p is not None
        ]
        clear = sum(_side(e) != "none" for e in tests)
        note = plain("groups.tested", k=clear, n=len(tests)) if tests else plain("groups.plain")
        heads = ("label", "color", "x", "low", "high", *(m.label for m in columns), "n")
        frame = pl.DataFrame(rows, heads, orient="row", infer_schema_length=None)
        units = {"x": metric.unit, "color": "control", "n": "count"}
        title = f"By {COLUMNS.get(name) or _plain(name)}"
        yield Exhibit(f"by-{_plain(name)}", title, frame, units, "intervals", note, metric.label)

    def group_labels(self, name: str) -> Mapping[str, str]:
        if name == "relation":
            return self.labels
        if name == "template_no" and self.one:
            numbers = self.results.templates.select(col("template_no").cast(pl.String), "text")
            return dict(numbers.iter_rows())
        return {}

    def differences(self) -> Iterator[Exhibit]:
        """Each level of an axis minus its reference."""
        part = self.contrasts.filter(of="difference", over=self.layout.over)
        for (id, by, reference), lines in part.group_by(
            "metric", "group_by", "reference", maintain_order=True
        ):
            if (
                not by
                or "relation" in by
                or id not in (*self.layout.headlines, *self.layout.columns)
            ):
                continue
            metric = self.metrics[id]
            rows = [
                (", ".join(e["group"]), *_estimate(e)[:3], e["p_adjusted"], e["n"])
                for e in lines.iter_rows(named=True)
            ]
            frame = pl.DataFrame(rows, ("label", "x", "low", "high", "p", "n"), orient="row")
            units = {"x": _points(metric.unit), "p": "p", "n": "count"}
            title = f"{metric.label}: difference by {', '.join(_plain(name) for name in by)}"
            note = plain("contrasts", reference=reference)
            yield Exhibit(
                f"difference-{'-'.join(by)}-{id}",
                title,
                frame,
                units,
                "intervals",
                note,
                "difference",
            )

    def controls(self) -> Iterator[Exhibit]:
        """The model minus each control that was run."""
        part = self.contrasts.filter(of="difference", over=self.layout.over).filter(
            col("group_by").list.len() == 0
        )
        rows = [
            (
                f"{self.metrics[e['metric']].label}, {e['reference']}",
                *_estimate(e)[:3],
                e["p"],
                e["n"],
            )
            for e in part.iter_rows(named=True)
            if self.metrics[e["metric"]].unit == self.first.unit
        ]
        if rows:
            frame = pl.DataFrame(rows, ("label", "x", "low", "high", "p", "n"), orient="row")
            units = {"x": _points(self.first.unit), "p": "p", "n": "count"}
            yield Exhibit(
                "controls", "Difference from controls", frame, units, "intervals", "", "difference"
            )

    def first_k(self) -> Iterator[Exhibit]:
        """The share of prompts with the gold answer among the first k."""
        rank = col("rank")
        ranks = (
            self.results.rows.lazy()
            .filter(rank.is_not_null())
            .group_by("fact_no")
            .agg((rank <= k).mean().alias(str(k)) for k in range(1, 11))
        )
        shares = ranks.select(pl.exclude("fact_no").mean()).collect().row(0)
        if shares[0] is not None and shares[0] < shares[-1]:
            frame = pl.DataFrame({"x": range(1, 11), "y": shares})
            units = {"x": "count", "y": "percent"}
            yield Exhibit(
                "first-k",
                "Gold answer among the first k answers",
                frame,
                units,
                "lines",
                "",
                "k",
                "share of facts",
            )

    def confusion(self) -> Iterator[Exhibit]:
        """Which gold answer gets which answer."""
        rows = (
            self.results.table(["answer", "gold"])
            .drop_nulls()
            .with_columns(col(pl.Enum).cast(pl.String))
        )
        pairs = rows.group_by("gold", "answer").len("color").collect()
        top = [
            pairs.group_by(name)
            .agg(col("color").sum())
            .sort("color", name, descending=[True, False])
            .head(k)[name]
            for name, k in zip(("gold", "answer"), MATRIX, strict=True)
        ]
        kept = pairs.filter(
            col("gold").is_in(top[0].implode()), col("answer").is_in(top[1].implode())
        )
        grid = top[0].to_frame("gold").join(top[1].to_frame("answer"), how="cross")
        frame = grid.join(kept, on=("gold", "answer"), how="left", maintain_order="left").select(
            x="answer", y="gold", color="color"
        )
        if min(map(len, top)) > 1:
            yield Exhibit(
                "confusion",
                "Answers by gold answer",
                frame,
                {"color": "count"},
                "heat",
                plain("confusion"),
                "answer",
                "gold",
            )

    # 6. method, settings, provenance

    def method(self) -> Iterator[Item]:
        for mode in self.modes:
            yield say(f"method.{mode}")
        yield say("method.interval")
        yield say("method.test")
        yield say("method.groups", least=FEWEST)
        yield say("method.collapse", covered=COVERED, excess=EXCESS)
        yield from self.layout.notes
        rows = [
            (m.label or m.id, m.help, interval(e, m.unit))
            for m in self.metrics.values()
            if (e := self.get(m))
        ]
        yield Exhibit(
            "metrics",
            "Metrics",
            pl.DataFrame(rows, ("metric", "meaning", "value [95% CI]"), orient="row"),
        )
        counts = pl.DataFrame(
            [(name.replace(".", ": "), n) for name, n in self.counts.items()],
            ("count", "number"),
            orient="row",
        )
        yield Exhibit("counts", "Counts", counts)
        if self.run:
            yield Exhibit("provenance", "Settings and provenance", _settings(self.run.provenance()))


def plain(id: str, **values: Any) -> str:
    return text(say(id, **values))


def _estimate(e: Mapping[str, Any]) -> Estimate:
    p = e["p_adjusted"] if e["p_adjusted"] is not None else e["p"]
    return Estimate(e["value"], e["low"], e["high"], e["n"], p)


def _side(difference: Estimate) -> str:
    if difference.p is None or difference.p >= LEVEL:
        return "none"
    return "above" if difference.value > 0 else "below"


def _plain(name: str) -> str:
    return name.removeprefix("details.").removeprefix("numbers.").replace("_", " ")


def _points(unit: str) -> str:
    return "points" if unit == "percent" else unit


def _unended(result: Any) -> int:
    """How many texts have reasoning that does not end."""
    return 0


def _settings(values: Mapping[str, Any], prefix: str = "") -> pl.DataFrame:
    """Nested settings, a row each."""
    rows: list[tuple[str, str]] = []

    def walk(value: Any, name: str) -> None:
        if isinstance(value, Mapping) and value:
            for key, inner in value.items():
                walk(inner, f"{name}.{key}" if name else str(key))
        elif value not in ("", None, {}, [], ()):
            rows.append((name, str(value)))

    walk(values, prefix)
    return pl.DataFrame(rows, ("setting", "value"), orient="row")
