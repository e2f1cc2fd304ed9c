"""Models that answer behind an address, or in a library that speaks as a server does.

A prompt becomes questions about token ids (`asks`), a dialect turns these into requests and replies
into checked numbers (`dialect`, a file for each), a `transport` carries them. `DIALECTS` is how
dialects are found, in the order in which they are tried.
"""

DIALECTS = {
    "vllm": "sonde.models.served.vllm:Vllm",
    "sglang": "sonde.models.served.sglang:Sglang",
    "llamacpp": "sonde.models.served.llamacpp:LlamaCpp",
    "plain": "sonde.models.served.plain:Plain",
}
