"""Workers: started, lost, replaced, and what a run has whoever made it."""
