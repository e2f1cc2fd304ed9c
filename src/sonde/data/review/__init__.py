"""Review of templates by people.

    judgements  what reviewers are shown and say, in a file that only grows, and what they keep
    quality     what that adds up to on the paper's scale, and how far reviewers agree

Knows nothing of terminals and pages.
"""
