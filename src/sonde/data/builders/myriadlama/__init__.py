"""MyriadLAMA, built: a set of facts under many names and many wordings. A file for each step.

    base         the facts to begin with, one for each subject and relation
    objects      further correct objects, from a stream of triples and from statements
    names        further names of subjects and objects, by identifier
    wikidata     statements and names, asked of Wikidata
    assembly     the facts with all of these
    paraphrases  how a chat model says templates otherwise
    rows         the set as it was published, a prompt a row

What was answered, and what takes long, is kept in a folder beside the dataset (`builders/work.py`).
Knows neither models nor the terminal.
"""
