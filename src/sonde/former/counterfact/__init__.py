"""CounterFact: is what is true likelier than a given falsehood?"""
