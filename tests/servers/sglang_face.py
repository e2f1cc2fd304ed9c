"""A server that answers as SGLang's `/generate` does by its sources, from a tiny model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from tests.servers.answering import BadRequest, Body, Face


@dataclass(slots=True)
class SglangFace(Face):
    """SGLang's own way of being asked."""

    def gets(self) -> Mapping[str, Any]:
        listed = {"id": self.served, "max_model_len": self.answering.context}
        return {
            "/health": {},
            "/get_server_info": {"version": self.version},
            "/v1/models": {"data": [listed]},
        }

    def posts(self) -> Mapping[str, Callable[[Body], Any]]:
        return {"/generate": self.generate}

    def generate(self, body: Body) -> Any:
        wanted = body.get("token_ids_logprob") or [None] * len(body["input_ids"])
        tops = body.get("top_logprobs_num") or [0] * len(body["input_ids"])
        each = zip(
            body["input_ids"],
            body["logprob_start_len"],
            body["sampling_params"],
            wanted,
            tops,
            strict=True,
        )
        return [self.told(*one) for one in each]

    def told(
        self, ids: list[int], start: int, how: Body, wanted: list[int] | None, tops: int
    ) -> Body:
        answering, context = self.answering, self.answering.context
        if len(ids) + how["max_new_tokens"] > context:
            raise BadRequest(f"The input is longer than the model's context length ({context})")
        draw = None
        if how["temperature"]:
            draw = torch.Generator().manual_seed(how["sampling_seed"])
        stop = how.get("stop", [])
        path, logps, why = answering.written(ids, how["max_new_tokens"], stop, draw)
        text = answering.text(ids, path)
        for word in stop:
            text = text.split(word)[0]
        read = range(start, len(ids)) if start >= 0 else ()
        rated = answering.rated(ids)
        info: Body = {
            "prompt_tokens": len(ids),
            "finish_reason": {"type": why},
            "input_token_logprobs": [
                [rated[n] if n > start else None, ids[n], answering.piece(ids[n])] for n in read
            ],
            "output_token_logprobs": [
                [logp, id, answering.piece(id)] for id, logp in zip(path, logps, strict=True)
            ],
        }
        if wanted is not None:
            row = answering.table(ids)[-1]
            info["output_token_ids_logprobs"] = [[[float(row[id]), id, None] for id in wanted]]
        if tops:
            likeliest = answering.tops(ids, path)
            info["output_top_logprobs"] = [[[value, id, None]] for id, value in likeliest]
        return {"text": text, "output_ids": path, "meta_info": info}
