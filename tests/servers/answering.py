"""Real HTTP servers on loopback that answer from a tiny causal model, each in its dialect's way.

`Answering` computes what a server would say, one text at a time; a `Face` says it as OpenAI's
completions do, and other faces as other servers. A sound reply may be changed on its way out
(`change`), which is how faults are made.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers

from tests.data.loopback import Reply, Request, listening

NAME = "tiny"

Body = dict[str, Any]
Change = Callable[[str, Body, Reply], Reply]
"""What becomes of a sound reply: the path, the body that was sent, and the reply."""


class BadRequest(Exception):
    """What a server does not take."""


class Answering:
    """A tiny model, one text at a time and without tricks, as a server would compute it."""

    def __init__(self, folder: Path, context: int = 128) -> None:
        load: Any = transformers.AutoModelForCausalLM
        self.model = load.from_pretrained(folder).eval()
        self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
        self.context = context
        self.lock = threading.Lock()  # threads of torch beside each other are slow
        self.tables: dict[tuple[int, ...], Any] = {}  # the same texts are asked for very often

    def ids(self, prompt: Any) -> list[int]:
        """A prompt as token ids; a text is tokenised as servers do it."""
        return self.tokenizer(prompt).input_ids if isinstance(prompt, str) else list(prompt)

    @torch.inference_mode()
    def table(self, ids: Sequence[int]) -> Any:
        """Log-probabilities of every token after each, [tokens, vocabulary]."""
        with self.lock:
            if (text := tuple(ids)) not in self.tables:
                logits = self.model(torch.tensor([text])).logits[0].double()
                self.tables[text] = torch.log_softmax(logits, -1)
            return self.tables[text]

    def rated(self, ids: Sequence[int]) -> list[float | None]:
        """The log-probability of each token given those before it; the first has none."""
        table = self.table(ids)
        return [None, *(float(table[i - 1, ids[i]]) for i in range(1, len(ids)))]

    def written(
        self, ids: Sequence[int], most: int, stop: Sequence[str], draw: torch.Generator | None
    ) -> tuple[list[int], list[float], str]:
        """Tokens, their log-probabilities, and why it ended: "stop" or "length"."""
        path: list[int] = []
        logps: list[float] = []
        for _ in range(most):
            row = self.table([*ids, *path])[-1]
            one = row.argmax() if draw is None else self.drawn(row, draw)
            path.append(int(one))
            logps.append(float(row[path[-1]]))
            ended = path[-1] == self.tokenizer.eos_token_id
            if ended or any(word in self.text(ids, path) for word in stop):
                return path, logps, "stop"
        return path, logps, "length"

    def drawn(self, row: Any, draw: torch.Generator) -> Any:
        """A token drawn by its log-probability."""
        return torch.multinomial(row.exp(), 1, generator=draw)

    def tops(self, ids: Sequence[int], path: Sequence[int]) -> list[tuple[int, float]]:
        """The likeliest token of each place of what was written, with its log-probability."""
        rows = (self.table([*ids, *path[:n]])[-1] for n in range(len(path)))
        return [(int(row.argmax()), float(row.max())) for row in rows]

    def text(self, ids: Sequence[int], path: Sequence[int]) -> str:
        """What some tokens say behind others, without special ones."""
        before, whole = (
            self.tokenizer.decode(list(part), skip_special_tokens=True)
            for part in (ids, [*ids, *path])
        )
        return str(whole[len(before) :])

    def piece(self, id: int) -> str:
        """What one token says."""
        return str(self.tokenizer.decode([id]))


@dataclass(slots=True)
class Face:
    """A plain server; `seen` is what it was asked."""

    answering: Answering
    key: str = ""
    version: str = "1.0"
    served: str = NAME
    seen: list[tuple[str, Body]] = field(default_factory=list)
    change: Change | None = None

    def gets(self) -> Mapping[str, Any]:
        """What lies under paths that are only looked at."""
        listed = {"id": self.served, "object": "model", "max_model_len": self.answering.context}
        return {
            "/health": {},
            "/version": {"version": self.version},
            "/v1/models": {"object": "list", "data": [listed]},
        }

    def posts(self) -> Mapping[str, Callable[[Body], Any]]:
        """What answers what is sent to a path."""
        return {"/v1/completions": self.completions}

    def completions(self, body: Body) -> Any:
        """Completions, as OpenAI's were."""
        if body.get("model") != self.served:
            raise LookupError(f"The model `{body.get('model')}` does not exist.")
        prompts = body["prompt"]
        single = isinstance(prompts, str) or (bool(prompts) and isinstance(prompts[0], int))
        each = [self.answering.ids(p) for p in ([prompts] if single else prompts)]
        choices: list[Any] = []
        for ids in each:
            self.admit(ids, body)
            for number in range(body.get("n", 1)):
                choices.append(self.choice(len(choices), ids, body, number))
        usage = {"prompt_tokens": sum(map(len, each))}
        return {"object": "text_completion", "choices": choices, "usage": usage}

    def admit(self, ids: Sequence[int], body: Body) -> None:
        """Refuse what is too long."""
        context = self.answering.context
        if len(ids) + body.get("max_tokens", 16) > context + 1:
            raise BadRequest(f"maximum context length is {context} tokens; you sent {len(ids)}")

    def draw(self, body: Body, number: int) -> torch.Generator | None:
        """The draws of a request; None where the likeliest is wanted."""
        if not body.get("temperature", 1.0):
            return None
        return torch.Generator().manual_seed(int(body.get("seed") or 0) * 1000 + number)

    def choice(self, index: int, ids: list[int], body: Body, number: int) -> Body:
        """One completion."""
        answering, stop = self.answering, body.get("stop") or []
        most = body.get("max_tokens", 16)
        path, logps, why = answering.written(ids, most, stop, self.draw(body, number))
        text = answering.text(ids, path)
        for word in stop:
            text = text.split(word)[0]
        tokens: list[int] = path
        values: list[float | None] = list(logps)
        if body.get("echo"):
            tokens, values = [*ids, *path], [*answering.rated(ids), *logps]
            text = answering.text([], tokens)
        found: Body = {"index": index, "text": text, "finish_reason": why, "logprobs": None}
        if body.get("logprobs") is not None:
            found["logprobs"] = self.logprobs(tokens, values)
            if not body.get("echo"):
                found["logprobs"]["top_logprobs"] = [
                    {answering.piece(path[n]): logps[n], answering.piece(id): value}
                    for n, (id, value) in enumerate(answering.tops(ids, path))
                ]
        return found

    def logprobs(self, tokens: list[int], values: list[float | None]) -> Body:
        """The log-probabilities of tokens, by their texts."""
        pieces = [self.answering.piece(id) for id in tokens]
        return {"tokens": pieces, "token_logprobs": values}


def answer(face: Face, request: Request) -> Reply:
    """What a server says to a request."""
    body: Body = json.loads(request.body) if request.body else {}
    face.seen.append((request.path, body))
    sound = _sound(face, request, body)
    return face.change(request.path, body, sound) if face.change else sound


def _sound(face: Face, request: Request, body: Body) -> Reply:
    if face.key and request.headers.get("Authorization") != f"Bearer {face.key}":
        return refusal(401, "Unauthorized")
    if not request.body:
        found = face.gets().get(request.path.partition("?")[0])
        return refusal(404, "Not Found") if found is None else said(found)
    compute = face.posts().get(request.path)
    try:
        return refusal(404, "Not Found") if compute is None else said(compute(body))
    except BadRequest as bad:
        return refusal(400, str(bad))
    except LookupError as missing:
        return refusal(404, str(missing))


def said(value: Any) -> Reply:
    """Some JSON."""
    return Reply(body=json.dumps(value), headers={"Content-Type": "application/json"})


def refusal(status: int, message: str) -> Reply:
    """A refusal as servers word it."""
    body = {"error": {"message": message, "type": "BadRequestError", "code": status}}
    return Reply(body=json.dumps(body), status=status)


@contextmanager
def serving(face: Face, port: int = 0) -> Iterator[str]:
    """Serve on loopback; gives the address."""
    with listening(lambda request: answer(face, request), port) as address:
        yield address
