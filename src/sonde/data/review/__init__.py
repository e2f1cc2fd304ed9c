"""Review of templates by people.

    judgements  what reviewers are shown, and what they say of it, in a file that only grows
    quality     what that adds up to on the paper's scale, and how far reviewers agree
    kept        the dataset with what they keep

Knows nothing of terminals and pages.
"""
