"""A server with faults: real HTTP, sound replies of a tiny model, and what may become of them.

A fault changes what a server takes a request for, how its model computes, or what it sends back.
Most look for numbers wherever a dialect has them, so that they fit all dialects.
"""

from __future__ import annotations

import copy
import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import httpx
import torch

from tests.data.loopback import Reply, Request, listening
from tests.servers.answering import Answering, Body, Face, answer, refusal

ASKED = ("/v1/completions", "/generate", "/completion")
"""Where things are asked; other paths only tell of the server."""

NODES = ("top_logprobs", "output_token_ids_logprobs")
"""Where the tokens stand that were wanted after a prompt."""

CLIENT = httpx.Client()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong: how a request is taken, how its model computes, what is sent back."""

    taken: Callable[[Body], Body] = lambda body: body
    computed: Callable[[Answering], Answering] = lambda answering: answering
    said: Callable[[Body, Reply], Reply] = lambda body, sound: sound


@dataclass(slots=True)
class Faulty:
    """A face, or a real server behind an address, with a fault; it may come and go at any time."""

    behind: Face | str
    fault: Fault | None = None
    heard: dict[tuple[str, bytes], Reply] = field(default_factory=dict)

    def reply(self, request: Request) -> Reply:
        """What is sent back; only what is asked of the model is faulty."""
        fault = self.fault
        if fault is None or request.path not in ASKED:
            return self.sound(request, Fault())
        body = fault.taken(json.loads(request.body))
        return fault.said(body, self.sound(replace(request, body=json.dumps(body).encode()), fault))

    def sound(self, request: Request, fault: Fault) -> Reply:
        """What is computed, wrongly if the fault is there."""
        if isinstance(self.behind, str):
            return self.forwarded(self.behind + request.path, request.body)
        face = copy.copy(self.behind)
        face.answering = fault.computed(face.answering)
        return answer(face, request)

    def forwarded(self, url: str, body: bytes) -> Reply:
        """What another server says; the same to the same question, which is asked once."""
        if (url, body) not in self.heard:
            got = CLIENT.request("POST" if body else "GET", url, content=body, timeout=60)
            self.heard[url, body] = Reply(body=got.content, status=got.status_code)
        return self.heard[url, body]


@contextmanager
def serving(faulty: Faulty, port: int = 0) -> Iterator[str]:
    """Serve on loopback; gives the address."""
    with listening(faulty.reply, port) as address:
        yield address


def always(reply: Reply) -> Fault:
    """The same reply to everything."""
    return Fault(said=lambda body, sound: reply)


def at_first(times: int, reply: Reply) -> Fault:
    """A reply instead of each sound one, so many times for the same question."""
    lock, met = threading.Lock(), dict[str, int]()

    def said(body: Body, sound: Reply) -> Reply:
        key = json.dumps(body, sort_keys=True)
        with lock:
            met[key] = met.get(key, 0) + 1
            return reply if met[key] <= times else sound

    return Fault(said=said)


def ignoring(*names: str) -> Fault:
    """A server that does not know some fields of a request, and says nothing of it."""
    return Fault(taken=lambda body: {key: body[key] for key in body if key not in names})


def computing(name: str, way: Callable[..., Any]) -> Fault:
    """A model that computes something otherwise; `way` is given the sound way first."""

    def computed(answering: Answering) -> Answering:
        wrong, sound = copy.copy(answering), getattr(answering, name)
        setattr(wrong, name, lambda *given: way(sound, *given))
        return wrong

    return Fault(computed=computed)


def edited(edit: Callable[[Any], Any]) -> Fault:
    """A sound reply's JSON changed in place."""

    def said(body: Body, sound: Reply) -> Reply:
        if sound.status != 200:
            return sound
        value = json.loads(sound.body)
        edit(value)
        return replace(sound, body=json.dumps(value))

    return Fault(said=said)


def slots(value: Any, within: bool = False) -> Iterator[tuple[Any, Any]]:
    """Where log-probabilities stand in a reply, whatever its dialect: (container, key)."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, entry in list(entries):
        named = within or (isinstance(key, str) and ("logprob" in key or "probabilities" in key))
        if isinstance(entry, dict | list):
            yield from slots(entry, named)
        elif named and isinstance(entry, float):
            yield value, key


def numbers(change: Callable[[float], Any]) -> Fault:
    """Every log-probability changed."""

    def edit(value: Any) -> None:
        for container, key in slots(value):
            container[key] = change(container[key])

    return edited(edit)


def without(*names: str) -> Fault:
    """Some fields left out, wherever they stand."""

    def cut(value: Any) -> None:
        for entry in list(value.values() if isinstance(value, dict) else value):
            if isinstance(entry, dict | list):
                cut(entry)
        for name in names if isinstance(value, dict) else ():
            value.pop(name, None)

    return edited(cut)


def answers(change: Callable[[list[Any]], Any]) -> Fault:
    """The answers to the prompts of a request changed, where there are several."""

    def edit(value: Any) -> None:
        change(value if isinstance(value, list) else value.get("choices", []))

    return edited(edit)


def swap(rows: list[Any]) -> None:
    """The answer to one prompt under the number of another."""
    for first, second in zip(rows[::2], rows[1::2], strict=False):
        if "index" in first:
            first["index"], second["index"] = second["index"], first["index"]
        else:
            first["meta_info"], second["meta_info"] = second["meta_info"], first["meta_info"]


def renumber(rows: list[Any]) -> None:
    """All answers under one number."""
    for row in rows:
        row["index"] = 0


def repeat(rows: list[Any]) -> None:
    """The first answer for all prompts, numbered as theirs."""
    rows[:] = [{**rows[0], "index": number} for number in range(len(rows))]


def chat_shape(value: Any) -> None:
    """Log-probabilities as chat completions have them."""
    for each in value.get("choices", ()) if isinstance(value, dict) else ():
        each["message"] = {"role": "assistant", "content": each.pop("text")}
        told = each.get("logprobs") or {"tokens": [], "token_logprobs": []}
        pairs = zip(told["tokens"], told["token_logprobs"], strict=True)
        each["logprobs"] = {"content": [{"token": t, "logprob": v} for t, v in pairs]}


def top_only(value: Any) -> None:
    """Only the likeliest of the tokens that were wanted after a prompt."""
    for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
        if key in NODES and entry:
            value[key] = [best(entry)] if "id" in entry[0] else [best(each) for each in entry]
        elif isinstance(entry, dict | list):
            top_only(entry)


def nodes(change: Callable[[list[float]], list[float]]) -> Fault:
    """The log-probabilities of the tokens that were wanted after a prompt changed, no others."""

    def edit(value: Any) -> None:
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            if key in NODES and entry:
                for row in [entry] if "id" in entry[0] else entry:
                    places = list(slots(row, within=True))
                    changed = change([container[name] for container, name in places])
                    for (container, name), number in zip(places, changed, strict=True):
                        container[name] = number
            elif isinstance(entry, dict | list):
                edit(entry)

    return edited(edit)


def rotated(values: list[float]) -> list[float]:
    """The numbers of tokens given to others, far away where they are sorted."""
    half = len(values) // 2
    return values[half:] + values[:half]


def shares(values: list[float]) -> list[float]:
    """Log-probabilities as if there were no other tokens."""
    total = math.log(sum(map(math.exp, values)))
    return [min(value - total, 0.0) for value in values]


def colder(values: list[float]) -> list[float]:
    """Log-probabilities at another temperature; those of a whole vocabulary sum to 1 again."""
    cold = [1.3 * value for value in values]
    return shares(cold) if abs(sum(map(math.exp, values)) - 1) < 1e-3 else cold


def one_node(rows: list[Any]) -> None:
    """What follows the first prompt of a request, told of all of them."""
    for row in rows:
        if "top_logprobs" in (row.get("logprobs") or {}):
            row["logprobs"]["top_logprobs"] = rows[0]["logprobs"]["top_logprobs"]


def one_place_before(answering: Answering) -> Answering:
    """A model of which the tokens that follow are told for one place before; all else is sound."""
    wrong: Any = copy.copy(answering)
    wrong.table = lambda ids: answering.table(ids)[: max(len(ids) - 1, 1)]
    wrong.rated, wrong.written, wrong.tops = answering.rated, answering.written, answering.tops
    return wrong  # type: ignore[no-any-return]


def colder_writing(answering: Answering) -> Answering:
    """A model that tells what it writes, and what it might have, at another temperature."""
    wrong: Any = copy.copy(answering)

    def written(*given: Any) -> Any:
        path, logps, why = answering.written(*given)
        return path, [1.3 * value for value in logps], why

    wrong.written = written
    wrong.tops = lambda *given: [(id, 1.3 * value) for id, value in answering.tops(*given)]
    return wrong  # type: ignore[no-any-return]


def always_drawn(sound: Callable[..., Any], *given: Any) -> Any:
    """What is written, drawn with one seed where the likeliest is wanted."""
    *asked, draw = given
    return sound(*asked, draw or torch.Generator().manual_seed(1))


def drawn_as(temperature: float, most: int) -> Fault:
    """A model that draws at a temperature of its own, among so many of the likeliest tokens."""

    def drawn(sound: Callable[..., Any], row: Any, draw: Any) -> Any:
        top = row.topk(most)
        return top.indices[sound((top.values / temperature).log_softmax(-1), draw)]

    return computing("drawn", drawn)


def said_colder(body: Body, sound: Reply) -> Reply:
    """The same of llama.cpp's server, whose model is not here."""
    writes = "n_predict" in body and "grammar" not in body
    return numbers(lambda value: 1.3 * value).said(body, sound) if writes else sound


def best(told: Any) -> Any:
    """The likeliest token of one place, as it is told."""
    if isinstance(told, dict):
        return dict([max(told.items(), key=lambda pair: pair[1])])
    if isinstance(told[0], list):
        return [max(told, key=lambda entry: entry[0])]
    return max(told, key=lambda entry: entry["logprob"])


def prompts(change: Callable[[list[int]], list[int]]) -> Fault:
    """A server that takes other tokens for a prompt than were sent."""

    def taken(body: Body) -> Body:
        for key in {"prompt", "input_ids"} & set(body):
            sent = body[key]
            single = isinstance(sent[0], int)
            body = body | {key: change(sent) if single else [change(ids) for ids in sent]}
        return body

    return Fault(taken=taken)


def busy(wait: str | None, status: int = 429) -> Reply:
    """Too much to do; `wait` as the header has it."""
    headers = {} if wait is None else {"Retry-After": wait}
    return replace(refusal(status, "Too many requests"), headers=headers)


PARAMS = "sampling_params"

SEEDS = count()


def own_seed(body: Body) -> Body:
    """A request with another seed than was sent."""
    each = body.get(PARAMS)
    if each is None:
        return body | {"seed": next(SEEDS)}
    return body | {PARAMS: [one | {"sampling_seed": next(SEEDS)} for one in each]}


def a_token_more(body: Body) -> Body:
    """A request for one more token to be written, as of a server that writes one for none."""
    for name in {"max_tokens", "n_predict"} & set(body):
        body = body | {name: body[name] + 1}
    each = [one | {"max_new_tokens": one["max_new_tokens"] + 1} for one in body.get(PARAMS, ())]
    return body | ({PARAMS: each} if each else {})


HTML = Reply(body="<html><h1>Welcome</h1></html>", headers={"Content-Type": "text/html"})

PASSING: Mapping[str, Reply] = {
    "reset in mid-body": Reply(body='{"choices": [', reset=True),
    "cut short": Reply(body='{"choices": [', cut=True),
    "truncated JSON": Reply(body='{"choices": [{"index": 0, "tex'),
    "HTML from a proxy": HTML,
    "503 while loading": refusal(503, "Loading model"),
    "429, seconds": busy("0"),
    "429, a date": busy("Mon, 16 Nov 2026 18:00:00 GMT"),
    "429, nothing": busy(None),
    "408": refusal(408, "Request Timeout"),
    "500": refusal(500, "CUDA error"),
    "502": Reply(body=HTML.body, status=502),
    "504": Reply(body=HTML.body, status=504),
    "200 with an error": Reply(body=json.dumps({"error": {"message": "engine died"}})),
    "200 with nothing": Reply(body=""),
}
"""Replies that another try may not meet."""

TOLD = ("logprobs", "prompt_logprobs", "completion_probabilities", "meta_info")

WRONG: Mapping[str, Fault] = {
    "log-probabilities absent": without(*TOLD),
    "null": numbers(lambda value: None),
    "texts": numbers(str),
    "NaN": numbers(lambda value: math.nan),
    "-inf": numbers(lambda value: -math.inf),
    "positive": numbers(lambda value: -value),
    "probabilities": numbers(math.exp),
    "all the same": numbers(lambda value: -2.5),
    "masked": numbers(lambda value: 0.0),
    "chat shape": edited(chat_shape),
    "shifted by one": computing("rated", lambda sound, ids: [None, *sound(ids)[:-1]]),
    "shifted back": computing("rated", lambda sound, ids: [*sound(ids)[1:], -1.0]),
    "one row for all places": computing(
        "rated", lambda sound, ids: [None, *(sound([ids[0], id])[1] for id in ids[1:])]
    ),
    "temperature in the prompt's": computing(
        "rated", lambda sound, ids: [None, *(2 * value for value in sound(ids)[1:])]
    ),
    "nodes one place before": Fault(computed=one_place_before),
    "nodes rotated": nodes(rotated),
    "nodes masked": nodes(shares),
    "nodes at a temperature": nodes(colder),
    "one node for all": answers(one_node),
    "a temperature in what is written": Fault(computed=colder_writing, said=said_colder),
    "temperature ignored": replace(
        computing("written", always_drawn), taken=ignoring("temperature", "samplers").taken
    ),
    "beginning added": prompts(lambda ids: [0, *ids]),
    "tokenised anew": prompts(lambda ids: [*ids[:1], 300, *ids[3:]]),
    "prompt truncated": prompts(lambda ids: ids[-4:]),
    "fewer answers": answers(lambda rows: rows and rows.pop()),
    "one number for all answers": answers(renumber),
    "one answer for all": answers(repeat),
    "answers swapped": answers(swap),
    "answers in another order": answers(lambda rows: rows.reverse()),
    "top only": edited(top_only),
    "echo ignored": ignoring("echo", "prompt_logprobs"),
    "unknown fields ignored": ignoring(
        "prompt_logprobs", "logprob_token_ids", "token_ids_logprob", "grammar", "n_probs"
    ),
    "the list of ids ignored": ignoring("logprob_token_ids", "token_ids_logprob"),
    "n ignored": ignoring("n"),
    "keys that are texts": ignoring("return_tokens_as_token_ids"),
    "a token more": Fault(taken=a_token_more),
    "seed ignored": Fault(taken=own_seed),
}
"""Replies that look sound."""
