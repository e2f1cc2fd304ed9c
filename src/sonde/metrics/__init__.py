"""From answers to numbers: judgements of single answers and estimates over many."""
