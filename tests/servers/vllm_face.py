"""A server that answers as vLLM 0.32 does, from a tiny model; traps of vLLM's included.

Unknown fields are ignored, a prompt that is too long makes the whole request fail, and more than
128 token ids are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.servers.answering import BadRequest, Body, Face

MOST_IDS = 128


@dataclass(slots=True)
class VllmFace(Face):
    """vLLM's completions; `knows_ids` is False for an old one, which ignores newer fields."""

    knows_ids: bool = True

    def posts(self) -> Mapping[str, Callable[[Body], Any]]:
        return {"/v1/completions": self.completions, "/detokenize": self.detokenize}

    def detokenize(self, body: Body) -> Any:
        return {"prompt": self.answering.tokenizer.decode(body["tokens"])}

    def admit(self, ids: Sequence[int], body: Body) -> None:
        context = self.answering.context
        if len(ids) + body["max_tokens"] > context:
            raise BadRequest(f"This model's maximum context length is {context} tokens.")
        if len(body.get("logprob_token_ids", ())) > MOST_IDS:
            raise BadRequest("Requested logprob_token_ids of length above 128")

    def choice(self, index: int, ids: list[int], body: Body, number: int) -> Body:
        answering, stop = self.answering, body.get("stop") or []
        draw = self.draw(body, number)
        path, logps, why = answering.written(ids, body["max_tokens"], stop, draw)
        text = answering.text(ids, path)
        for word in stop:
            text = text.split(word)[0]
        found: Body = {"index": index, "text": text, "finish_reason": why}
        if body.get("prompt_logprobs") is not None:
            steps = zip(ids, answering.rated(ids), strict=True)
            told = [{str(id): {"logprob": value}} for id, value in steps]
            found["prompt_logprobs"] = [None, *told[1:]]
        if body.get("logprobs") is not None:
            found["logprobs"] = self.steps(ids, path, logps, body)
        if self.knows_ids and body.get("return_token_ids"):
            found |= {"token_ids": path, "prompt_token_ids": ids}
        return found

    def steps(self, ids: list[int], path: list[int], logps: list[float], body: Body) -> Body:
        wanted = body.get("logprob_token_ids", ()) if self.knows_ids else ()
        rows = [self.answering.table([*ids, *path[:n]])[-1] for n in range(len(path))]
        keys = [[path[n], *wanted] for n in range(len(path))]
        tops = self.answering.tops(ids, path) if body["logprobs"] and not wanted else ()
        as_ids = body.get("return_tokens_as_token_ids")
        named = (lambda id: f"token_id:{id}") if as_ids else self.answering.piece
        return {
            "tokens": [named(id) for id in path],
            "token_logprobs": logps,
            "top_logprobs": [
                {named(id): float(row[id]) for id in own}  # texts of tokens collide
                | {named(id): value for id, value in tops[n : n + 1]}
                for n, (row, own) in enumerate(zip(rows, keys, strict=True))
            ],
        }
