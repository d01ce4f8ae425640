"""CPU families: which there are, which a machine is of, what compilers make of them, and the patch that adds them."""
