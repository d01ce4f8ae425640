"""The size that a run needs to see an effect: components of variance, power, and the cheapest plan."""
