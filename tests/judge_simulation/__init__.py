"""Runs drawn from known truths, in which it is known what the judge has to find: few of them in tests/unit, many in
tools/simulate."""
