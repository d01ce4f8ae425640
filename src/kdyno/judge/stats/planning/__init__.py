"""How large a run must be to see an effect: components of variance, power, and the cheapest plan."""
