"""MyriadLAMA, built: a set of facts under many names and many wordings. A file for each step.

    objects      further names, and further correct objects, from triples and from statements
    wikidata     statements and names, asked of Wikidata
    assembly     the facts to begin with, the facts with all of these, and a prompt a row
    paraphrases  how a chat model says templates otherwise

What was answered, and what takes long, is kept in a folder beside the dataset (`builders/work.py`).
Knows neither models nor the terminal.
"""
