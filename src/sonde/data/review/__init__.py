"""Review of templates by people.

    items       what reviewers are shown: a template with a fact in it, never the dataset
    judgements  what they say of it, kept in a file that only grows
    quality     what that adds up to on the paper's scale, and how far reviewers agree
    kept        the dataset with what they keep

Knows nothing of terminals and pages.
"""
