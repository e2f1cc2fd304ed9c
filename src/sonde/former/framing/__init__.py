"""Framing: the same facts as sentences, questions and statements."""
