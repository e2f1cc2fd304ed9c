"""New models of either kind, and how their weights are moved, step by step, so that a killed
training ends as an unbroken one.

The state after some step is saved now and then, whole or not at all; all that is drawn is drawn by
name. Knows transformers and a world's texts as tokens; nothing of facts.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import pickle
import platform
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer
from torch.nn.attention import SDPBackend, sdpa_kernel

from sonde.core.errors import ModelError, StoreError
from sonde.core.files import PARTIAL, explain_os_errors, write_whole
from sonde.core.fingerprints import draw_key, file_hash
from sonde.lab.training.corpus import (
    PAD,
    SPECIAL,
    Blocks,
    Corpus,
    MaskedSentences,
    make_tokenizer,
    tokenised,
)
from sonde.lab.training.train import (
    CHECKPOINTS,
    CONTEXT,
    STATE,
    Kind,
    Tick,
    TrainSettings,
    kept_steps,
    shape,
    write_record,
)
from sonde.lab.worlds.text import documents
from sonde.lab.worlds.world import World
from sonde.models.torch.loading.weights import pick_device
from sonde.models.torch.recorded import Recorded
from sonde.store.manifest import versions

BETAS, CLIP = (0.9, 0.98), 1.0
POINTS = 100
"""Losses that are kept of a training, each a mean."""


class Training:
    """One training: its texts, model and optimiser, and how far it is."""

    def __init__(
        self, world: World, settings: TrainSettings, path: Path, *, every: float, tick: Tick
    ) -> None:
        self.device = pick_device(settings.device)
        self.settings = replace(settings, device=self.device)
        self.path, self.every, self.tick = path, every, tick
        self.tokenizer = make_tokenizer(world.words(), settings.kind, world.settings.language)
        texts = (d.text for d in documents(world, lists=settings.lists, seed=settings.seed))
        corpus = tokenised(texts, self.tokenizer)
        self.tokens = len(corpus.ids)
        self.batches = self._batches(corpus)
        self.steps = self.batches.each * settings.epochs
        self.model = new_model(settings, self.tokenizer).to(self.device).train()
        on_gpu = torch.device(self.device).type == "cuda"
        if on_gpu and settings.kind == "causal":
            self.model.set_attn_implementation(CAUSAL)
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(),
            lr=torch.tensor(0.0, device=self.device),
            betas=BETAS,
            weight_decay=settings.decay,
            fused=True,
            capturable=on_gpu,
        )
        self.moved = Recorded(self.device)
        self.done = 0
        self.history: list[tuple[int, float]] = []
        self.total = torch.zeros((), device=self.device)

    def run(self, about: Mapping[str, Any]) -> None:
        """Train to the end, from where the folder stands."""
        with explain_os_errors(self.path), steady(self.settings):
            self._load()
            saved = time.monotonic()
            kept = kept_steps(self.steps, self.settings.checkpoints)
            while self.done < self.steps:
                self._step()
                if self.done in kept:
                    self._keep(self.path / CHECKPOINTS / f"step-{self.done:06}", about)
                if time.monotonic() - saved >= self.every and self.done < self.steps:
                    self._save()
                    saved = time.monotonic()
            self._keep(self.path, about)
            (self.path / STATE).unlink(missing_ok=True)

    def rate(self, step: int) -> float:
        """The learning rate of a step: up from nothing over the warm-up, then down to nothing."""
        warm = max(1, int(self.steps * self.settings.warmup))
        falling = (self.steps - step) / max(1, self.steps - warm)
        return self.settings.rate * min((step + 1) / warm, falling)

    def _batches(self, corpus: Corpus) -> Blocks | MaskedSentences:
        if self.settings.kind == "causal":
            return Blocks(corpus, self.settings, self.device)
        longest, most = int(corpus.lengths.max()), CONTEXT["masked"]
        if longest > most:
            raise ModelError(
                f"a sentence of the world has {longest} tokens and a masked model takes {most}; "
                "use shorter templates"
            )
        mask = self.tokenizer.token_to_id("[MASK]")
        assert mask is not None
        return MaskedSentences(corpus, self.settings, self.device, mask)

    def _step(self) -> None:
        self.optimiser.param_groups[0]["lr"].fill_(self.rate(self.done))
        self.moved(self._move, self._state, *self.batches.step(self.done))
        self.done += 1
        self._note()
        self.tick(self.done, self.steps, f"loss {self.history[-1][1]:.3f}" if self.history else "")

    def _move(self, ids: Any, labels: Any) -> None:
        """Move the weights by what a batch says."""
        half = self.settings.precision == "bfloat16"
        with torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=half):
            loss = loss_of(self.model, self.settings, ids, labels)
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimiser.step()
        self.total += loss.detach()

    def _state(self) -> Sequence[Sequence[Any]]:
        """All that a step changes."""
        moments = [tuple(own.values()) for own in self.optimiser.state.values()]
        return list(self.model.parameters()), *zip(*moments, strict=True), [self.total]

    def _note(self) -> None:
        """Now and then keep the mean loss; not each time, since a GPU would have to wait."""
        stretch = max(1, self.steps // POINTS)
        if self.done % stretch and self.done != self.steps:
            return
        since = self.done - (self.history[-1][0] if self.history else 0)
        self.history.append((self.done, self._finite(float(self.total) / since)))
        self.total.zero_()

    def _finite(self, loss: float) -> float:
        if not math.isfinite(loss):
            raise ModelError(
                f"training broke off at step {self.done} of {self.steps}: its loss was no longer "
                f"a finite number; use a smaller --rate than {self.settings.rate:g}"
            )
        return loss

    def _keep(self, folder: Path, about: Mapping[str, Any]) -> None:
        """Write the model as it stands; its record comes last and makes it whole."""
        self._finite(float(self.total))
        folder.mkdir(parents=True, exist_ok=True)
        keep(self.model, self.tokenizer, self.settings.kind, folder)
        where = about["world"]["path"]
        from_here = None if where is None else os.path.relpath(self.path / where, folder)
        record = {
            **about,
            "world": {**about["world"], "path": from_here},
            "step": self.done,
            "steps": self.steps,
            "tokens": self.tokens,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "loss": self.history[-1][1] if self.history else None,
            "history": self.history,
            "versions": {"python": platform.python_version(), **versions()},
            "weights": file_hash(folder / WEIGHTS),
            "complete": True,
        }
        write_record(folder, record)

    def _save(self) -> None:
        """Save all that the next step needs."""
        self._finite(float(self.total))
        state = {
            "done": self.done,
            "history": self.history,
            "total": self.total,
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
        }
        buffer = io.BytesIO()
        torch.save(state, buffer)
        # a byte that went wrong would be trained on, unseen
        data = buffer.getvalue()
        write_whole(self.path / STATE, hashlib.sha256(data).digest() + data)

    def _load(self) -> None:
        """Go on from what was saved, if anything was."""
        path = self.path / STATE
        if not path.exists():
            return
        data = path.read_bytes()
        try:
            if hashlib.sha256(data[32:]).digest() != data[:32]:
                raise ValueError
            state = torch.load(io.BytesIO(data[32:]), self.device, weights_only=True)
        except (ValueError, pickle.UnpicklingError):
            raise StoreError(f"{path} is damaged; remove the folder and train anew") from None
        self.done, self.history = state["done"], state["history"]
        self.total.copy_(state["total"])
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])


@contextmanager
def steady(settings: TrainSettings) -> Iterator[None]:
    """Sums in one order only, so that a training can be repeated; set back afterwards."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    threads, was = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    caution: Any = torch.utils.deterministic
    fills = caution.fill_uninitialized_memory
    torch.set_num_threads(settings.threads)
    torch.use_deterministic_algorithms(True)
    caution.fill_uninitialized_memory = False  # costs time, finds errors of torch
    quiet: Any = transformers.utils.logging
    quiet.disable_progress_bar()
    try:
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):  # both repeat themselves
            yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(was)
        caution.fill_uninitialized_memory = fills


WEIGHTS = "model.safetensors"


def new_model(settings: TrainSettings, tokenizer: Tokenizer) -> Any:
    """A model with random weights, drawn by the seed."""
    config = _config(settings, tokenizer)
    classes: Mapping[Kind, Any] = {
        "causal": transformers.LlamaForCausalLM,
        "masked": transformers.BertForMaskedLM,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(draw_key(settings.seed, "weights") >> 1)
        return classes[settings.kind](config)


def loss_of(model: Any, settings: TrainSettings, ids: Any, labels: Any) -> Any:
    """The mean loss of a batch, in nats a token that is to be told."""
    if settings.kind == "causal":
        logits = model(input_ids=ids, use_cache=False).logits
        return _cross_entropy(logits.flatten(0, 1), labels.flatten())
    if ids.device.type == "cuda":
        return unwaiting_loss(model, settings.mask, ids, labels)
    hidden = model.bert(input_ids=ids, attention_mask=(ids != PAD).long()).last_hidden_state
    masked = labels >= 0
    return _cross_entropy(model.cls(hidden[masked]), labels[masked])  # the head there alone


def unwaiting_loss(model: Any, share: float, ids: Any, labels: Any) -> Any:
    """The same of a masked model, in shapes that do not depend on what is masked.

    So nothing waits for a GPU to tell how many words are masked. The head is applied at as many
    places as there can be, the masked ones first; the others are left out of the mean.
    """
    kept = (ids != PAD)[:, None, None]
    hidden = model.bert(input_ids=ids, attention_mask=kept).last_hidden_state
    flat = labels.flatten()
    holes = torch.argsort((flat < 0).to(torch.uint8), stable=True)[: most_holes(ids.shape, share)]
    return _cross_entropy(model.cls(hidden.flatten(0, 1)[holes]), flat[holes])


def most_holes(shape: tuple[int, int], share: float) -> int:
    """How many words of [sentences, tokens] may be masked: the mean and twelve deviations.

    A word more has a chance below 1e-30; it would not be learnt from in that step.

    >>> most_holes((2048, 12), 0.2), most_holes((1, 4), 0.2)
    (5055, 2)
    """
    sentences, words = shape[0], max(shape[1] - 2, 1)
    mean = sentences * (share * words + (1 - share) ** words)  # one of a sentence at least
    spread = math.sqrt(sentences * (words * share * (1 - share) + 0.25))
    return min(sentences * words, math.ceil(mean + 12 * spread))


def attend(module: Any, query: Any, key: Any, value: Any, *_: Any, **given: Any) -> tuple[Any, Any]:
    """Attention to all that was read before, without a mask: to make one waits for the device."""
    sdpa = torch.nn.functional.scaled_dot_product_attention
    seen = sdpa(query, key, value, is_causal=True, scale=given.get("scaling"))
    return seen.transpose(1, 2).contiguous(), None


CAUSAL = "sonde_causal"
transformers.AttentionInterface.register(CAUSAL, attend)


def keep(model: Any, tokenizer: Tokenizer, kind: Kind, folder: Path) -> None:
    """Write a model into a folder, file by file whole or not at all."""
    partial = folder / f"model{PARTIAL}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    model.save_pretrained(partial)
    wrap: Any = transformers.PreTrainedTokenizerFast
    wrap(
        tokenizer_object=tokenizer,
        clean_up_tokenization_spaces=False,
        model_max_length=CONTEXT[kind],
        **SPECIAL[kind],
    ).save_pretrained(partial)
    for file in sorted(partial.iterdir()):
        with file.open("rb") as written:
            os.fsync(written.fileno())
        file.replace(folder / file.name)
    partial.rmdir()


def _cross_entropy(logits: Any, labels: Any) -> Any:
    return torch.nn.functional.cross_entropy(logits.float(), labels)


def _config(settings: TrainSettings, tokenizer: Tokenizer) -> Any:
    width, layers = shape(settings.size)
    common: dict[str, Any] = {
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": width,
        # three matrices of a causal layer are as many weights as two of a masked one
        "intermediate_size": width * 8 // 3 // 16 * 16 if settings.kind == "causal" else 4 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": max(1, width // (32 if width <= 256 else 64)),
        "max_position_embeddings": CONTEXT[settings.kind],
        "pad_token_id": PAD,
        "tie_word_embeddings": True,
    }
    if settings.kind == "causal":
        start = tokenizer.token_to_id("<s>")
        return transformers.LlamaConfig(**common, bos_token_id=start, eos_token_id=start)
    return transformers.BertConfig(
        **common, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, type_vocab_size=1
    )
