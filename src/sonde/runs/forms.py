"""In which form a run's prompts were put, in words: as plain texts, or in turns of a conversation.

Knows the model's entry in a manifest alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PLAIN = {"system": "", "examples": "turns", "thinking": "0"}
"""What a conversation is like unless flags say otherwise; `Chat.identity` has the same names."""


def in_words(chat: Mapping[str, str]) -> str:
    """What a run's conversations were like; empty where there were none.

    >>> in_words({"template": "bd02", "system": "Be brief.", "examples": "one", "thinking": "0"})
    "Asked in turns of a conversation, with the system text 'Be brief.' and examples in one turn."
    """
    if not chat:
        return ""
    more = [f"the system text {chat['system']!r}"] if chat["system"] else []
    more += ["examples in one turn"] if chat["examples"] == "one" else []
    more += [f"{chat['thinking']} tokens for thoughts"] if chat["thinking"] != "0" else []
    with_these = f", with {' and '.join(more)}" if more else ""
    return f"Asked in turns of a conversation{with_these}."


def form_settings(models: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The flags of each run's form, as far as a run was asked in turns; none where no run was.

    >>> form_settings([{}, {"chat": {"template": "bd02", "system": "Hi", "thinking": "0"}}])
    [{'chat': 'never'}, {'chat': 'always', 'chat-system': 'Hi'}]
    >>> form_settings([{}, {}])
    [{}, {}]
    """
    chats = [model.get("chat") or {} for model in models]
    if not any(chats):
        return [{} for _ in chats]
    return [
        {
            "chat": "always" if chat else "never",
            **{f"chat-{k}": chat[k] for k, usual in PLAIN.items() if chat.get(k, usual) != usual},
        }
        for chat in chats
    ]
